#include "store/page_checksum.h"

#include "base/check.h"
#include "base/crc32c.h"

namespace store {

namespace {

uint32_t checksum(uint32_t number, BytesView page) {
  return crc32c(page.first(kChecksumOffset), crc32c(std::as_bytes(std::span(&number, 1))));
}

}  // namespace

void seal_page(uint32_t number, std::span<std::byte> page) {
  CHECK(page.size() == kPageBytes, page.size());
  const uint32_t trailer[2] = {checksum(number, page), number};
  static_assert(sizeof(trailer) == kReservedBytes);
  std::memcpy(page.data() + kChecksumOffset, trailer, sizeof(trailer));
}

bool page_is_intact(uint32_t number, BytesView page) {
  return load_integer<uint32_t>(page, kChecksumOffset) == checksum(number, page) &&
         load_integer<uint32_t>(page, kChecksumOffset + 4) == number;
}

}  // namespace store
