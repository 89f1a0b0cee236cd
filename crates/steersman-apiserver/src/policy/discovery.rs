//! What everybody may know: which API there is, how the server does, who they are themselves.

use super::rules::{
    AUTHENTICATION, AUTHORIZATION, Binding, Role, Subject, binding, role, rule, urls,
};

const AUTHENTICATED: Subject = Subject::Group("system:authenticated");
const UNAUTHENTICATED: Subject = Subject::Group("system:unauthenticated");

pub(super) const ROLES: &[Role] = &[
    role(
        "system:discovery",
        &[urls(
            "get",
            "/api /api/* /apis /apis/* /healthz /livez /openapi /openapi/* /readyz /version \
             /version/",
        )],
    ),
    role(
        "system:monitoring",
        &[
            urls(
                "get",
                "/flagz /healthz /healthz/* /livez /livez/* /metrics /metrics/slis /readyz \
                 /readyz/* /statusz",
            ),
            rule("get", "", "nodes/metrics"),
        ],
    ),
    role(
        "system:basic-user",
        &[
            rule("create", AUTHORIZATION, "selfsubjectaccessreviews selfsubjectrulesreviews"),
            rule("create", AUTHENTICATION, "selfsubjectreviews"),
        ],
    ),
    role("system:public-info-viewer", &[urls("get", "/healthz /livez /readyz /version /version/")]),
    role(
        "system:service-account-issuer-discovery",
        &[urls(
            "get",
            "/.well-known/openid-configuration /.well-known/openid-configuration/ \
             /openid/v1/jwks /openid/v1/jwks/",
        )],
    ),
];

pub(super) const BINDINGS: &[Binding] = &[
    binding("system:monitoring", &[Subject::Group("system:monitoring")]),
    binding("system:discovery", &[AUTHENTICATED]),
    binding("system:basic-user", &[AUTHENTICATED]),
    binding("system:public-info-viewer", &[AUTHENTICATED, UNAUTHENTICATED]),
    binding("system:service-account-issuer-discovery", &[Subject::Group("system:serviceaccounts")]),
];
