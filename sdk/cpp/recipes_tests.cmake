conclave_sdk_test(sdk_record_test SOURCES src/record_test.cc)
