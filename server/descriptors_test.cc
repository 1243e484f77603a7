#include "descriptors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "http/limits.h"

namespace {

using testing::HasSubstr;

TEST(Descriptors, ALimitThatIsTooLowIsRefusedWithAdvice) {
  for (const size_t limit : {0, 8, 40, 200}) {
    const auto shares = share_descriptors(limit, 1);
    ASSERT_FALSE(shares) << limit;
    EXPECT_THAT(shares.error().message, HasSubstr("open files is " + std::to_string(limit) + ", but at least 280 are"));
    EXPECT_THAT(shares.error().message, HasSubstr("ulimit -n"));
    EXPECT_THAT(shares.error().message, HasSubstr("LimitNOFILE="));
  }
}

TEST(Descriptors, SharesNeverAddUpToMoreThanTheLimit) {
  for (const size_t io_threads : {1, 4, 64}) {
    for (size_t limit = 0; limit < 3'000'000; limit += limit / 7 + 1) {
      const auto shares = share_descriptors(limit, io_threads);
      if (!shares) {
        EXPECT_LT(limit, 274 + 6 * io_threads);
        continue;
      }
      EXPECT_GE(shares->clients_max, 32u) << limit;
      EXPECT_GE(shares->requests_of_peer_port_max, 32u) << limit;
      EXPECT_LE(shares->clients_max, http::Limits().connections_max);
      // etcd keeps 150 for what is not a client's.
      EXPECT_GE(limit - shares->clients_max - shares->requests_of_peer_port_max, 150u) << limit;
    }
  }
  EXPECT_EQ(share_descriptors(1'000'000'000, 1)->clients_max, http::Limits().connections_max);
}

}  // namespace
