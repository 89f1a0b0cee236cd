//! How a program reaches the cluster as its service account.

use std::sync::Arc;

use k8s_openapi::api::authentication::v1::{TokenRequest, TokenRequestSpec};
use k8s_openapi::api::core::v1::ServiceAccount;
use kube::api::{Api, PostParams};
use kube::client::ClientBuilder;
use kube::config::AuthInfo;
use steersman::{Error, ObjectKey, Result};
use steersman_cluster::{ApiServer, User};
use tower::Layer;

use crate::cluster::Cluster;
use crate::permissions::{Program, Refused, Watched};

/// Who a program is.
pub(super) struct Identity {
    account: ObjectKey,
    way: Way,
}

enum Way {
    /// In process: the server takes everything for the account's.
    Direct(ApiServer),
    /// Over the network, with a token.
    Token(Box<kube::Config>),
}

impl Identity {
    /// This service account, which exists.
    pub(super) async fn of(cluster: &Cluster, account: ObjectKey) -> Result<Self> {
        let way = match cluster.config() {
            None => {
                let user = User::service_account(namespace(&account), &account.name);
                Way::Direct(cluster.inner().api().acting_as(user))
            }
            Some(config) => {
                let token = token(cluster.client().kube(), &account).await?;
                let mut config = config.clone();
                config.auth_info = AuthInfo { token: Some(token.into()), ..AuthInfo::default() };
                config.default_namespace = namespace(&account).to_owned();
                Way::Token(Box::new(config))
            }
        };
        Ok(Self { account, way })
    }

    /// Where the program runs.
    pub(super) fn namespace(&self) -> &str {
        namespace(&self.account)
    }

    /// A client of the account, of which this program is told what it is refused.
    pub(super) fn client(&self, program: &Arc<Program>) -> Result<kube::Client> {
        let refused = Refused::tell(program);
        match &self.way {
            Way::Direct(api) => {
                Ok(kube::Client::new(refused.layer(api.direct()), self.namespace()))
            }
            Way::Token(config) => {
                let client = ClientBuilder::try_from((**config).clone())?;
                Ok(client.with_layer(&refused).build())
            }
        }
    }

    /// The same as a service, with something in between to come.
    pub(super) fn service(&self, program: &Arc<Program>) -> Watched<ApiServer> {
        match &self.way {
            Way::Direct(api) => Refused::tell(program).layer(api.clone()),
            Way::Token(_) => panic!("a test marked `anywhere` cannot reach into the cluster"),
        }
    }
}

fn namespace(account: &ObjectKey) -> &str {
    account.namespace.as_deref().unwrap_or("default")
}

/// A token of a service account, good for as long as a test may take.
async fn token(client: &kube::Client, account: &ObjectKey) -> Result<String> {
    let accounts: Api<ServiceAccount> = Api::namespaced(client.clone(), namespace(account));
    let spec = TokenRequestSpec { expiration_seconds: Some(3600), ..TokenRequestSpec::default() };
    let request = TokenRequest { spec: Some(spec), ..TokenRequest::default() };
    let name = &account.name;
    let answer = accounts.create_token_request(name, &PostParams::default(), &request).await?;
    let token = answer.status.and_then(|status| status.token);
    token.ok_or_else(|| Error::message("there is no token in the answer"))
}
