// CRC-32C (Castagnoli), with the SSE 4.2 instruction where the machine has it, else by table.
#pragma once

#include <cstdint>

#include "base/bytes.h"

// `seed` is the CRC of what came before, 0 at the start: crc32c(b, crc32c(a)) == crc32c(a + b).
uint32_t crc32c(BytesView bytes, uint32_t seed = 0);
