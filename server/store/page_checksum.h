// The checksum in the reserved bytes of each page of the database file: CRC32C over the page's number and its content,
// then the number itself, so that a page in the wrong place is noticed as well as a changed one.
#pragma once

#include "base/bytes.h"
#include "store/format.h"

namespace store {

// `page` has kPageBytes; its last kReservedBytes are filled in.
void seal_page(uint32_t number, std::span<std::byte> page);
bool page_is_intact(uint32_t number, BytesView page);

}  // namespace store
