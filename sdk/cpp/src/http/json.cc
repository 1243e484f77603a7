// Json::parse and base64 by cpprestsdk.
#include "json.h"

#include <cpprest/asyncrt_utils.h>
#include <cpprest/json.h>

#include <exception>
#include <limits>

namespace conclave::inline v1::internal {

namespace {

Json convert(const web::json::value& value) {
  switch (value.type()) {
    case web::json::value::Boolean:
      return Json(value.as_bool());
    case web::json::value::String:
      return Json(value.as_string());
    case web::json::value::Number: {
      const auto& number = value.as_number();
      if (number.is_int64()) return Json(static_cast<std::int64_t>(number.to_int64()));
      return Json(number.to_double());
    }
    case web::json::value::Array: {
      Json::Array items;
      items.reserve(value.size());
      for (const auto& item : value.as_array()) items.push_back(convert(item));
      return Json(std::move(items));
    }
    case web::json::value::Object: {
      Json::Object members;
      members.reserve(value.size());
      for (const auto& [key, member] : value.as_object()) members.emplace_back(key, convert(member));
      return Json(std::move(members));
    }
    default:
      return Json();
  }
}

}  // namespace

Result<Json> Json::parse(std::string_view text) {
  try {
    return convert(web::json::value::parse(std::string(text)));
  } catch (const std::exception& e) {
    return fail(Code::kInvalidArgument, e.what());
  }
}

std::string base64_encode(std::string_view bytes) {
  return utility::conversions::to_base64(std::vector<unsigned char>(bytes.begin(), bytes.end()));
}

Result<std::string> base64_decode(std::string_view text) {
  try {
    const auto bytes = utility::conversions::from_base64(std::string(text));
    return std::string(bytes.begin(), bytes.end());
  } catch (const std::exception& e) {
    return fail(Code::kInvalidArgument, e.what());
  }
}

}  // namespace conclave::inline v1::internal
