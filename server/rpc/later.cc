// Calls of etcd that this version does not have: refused by name, so that a client hears what is missing instead of
// "not found". Each leaves this list when it is there.
#include "rpc/context.h"

namespace rpc {
namespace {

struct Missing {
  const char* service;
  const char* name;
  const char* path;
};

constexpr Missing kMissing[] = {
    {"etcdserverpb.Maintenance", "Defragment", "/v3/maintenance/defragment"},
    {"etcdserverpb.Maintenance", "Snapshot", "/v3/maintenance/snapshot"},
    {"etcdserverpb.Maintenance", "Downgrade", "/v3/maintenance/downgrade"},
    {"etcdserverpb.Auth", "AuthEnable", "/v3/auth/enable"},
    {"etcdserverpb.Auth", "AuthDisable", "/v3/auth/disable"},
    {"etcdserverpb.Auth", "AuthStatus", "/v3/auth/status"},
    {"etcdserverpb.Auth", "UserAdd", "/v3/auth/user/add"},
    {"etcdserverpb.Auth", "UserGet", "/v3/auth/user/get"},
    {"etcdserverpb.Auth", "UserList", "/v3/auth/user/list"},
    {"etcdserverpb.Auth", "UserDelete", "/v3/auth/user/delete"},
    {"etcdserverpb.Auth", "UserChangePassword", "/v3/auth/user/changepw"},
    {"etcdserverpb.Auth", "UserGrantRole", "/v3/auth/user/grant"},
    {"etcdserverpb.Auth", "UserRevokeRole", "/v3/auth/user/revoke"},
    {"etcdserverpb.Auth", "RoleAdd", "/v3/auth/role/add"},
    {"etcdserverpb.Auth", "RoleGet", "/v3/auth/role/get"},
    {"etcdserverpb.Auth", "RoleList", "/v3/auth/role/list"},
    {"etcdserverpb.Auth", "RoleDelete", "/v3/auth/role/delete"},
    {"etcdserverpb.Auth", "RoleGrantPermission", "/v3/auth/role/grant"},
    {"etcdserverpb.Auth", "RoleRevokePermission", "/v3/auth/role/revoke"},
    {"v3lockpb.Lock", "Lock", "/v3/lock/lock"},
    {"v3lockpb.Lock", "Unlock", "/v3/lock/unlock"},
    {"v3electionpb.Election", "Campaign", "/v3/election/campaign"},
    {"v3electionpb.Election", "Proclaim", "/v3/election/proclaim"},
    {"v3electionpb.Election", "Observe", "/v3/election/observe"},
    {"v3electionpb.Election", "Resign", "/v3/election/resign"},
};

// Any message will do to read the request with: what it does not know is skipped.
const google::protobuf::Message& any_request() { return etcdserverpb::StatusRequest::default_instance(); }

void refuse(http::Router& router, const Missing& missing, Code code, std::string message) {
  router.unary({.name = std::string("/") + missing.service + "/" + missing.name,
                .paths = {missing.path},
                .request = &any_request(),
                .handler = [code, message](http::UnaryCall call) { call.reply.fail(code, message); }});
}

}  // namespace

void add_later(http::Router& router) {
  for (const Missing& missing : kMissing) {
    refuse(router, missing, Code::kUnimplemented,
           std::string("conclave: ") + missing.service + "/" + missing.name + " is not in this version");
  }
  // There are no users yet, so authentication is never enabled.
  refuse(router, {"etcdserverpb.Auth", "Authenticate", "/v3/auth/authenticate"}, Code::kFailedPrecondition,
         "etcdserver: authentication is not enabled");
}

}  // namespace rpc
