//! What a cluster must hold so that machines can join it: the token, what the cluster says of itself
//! in public, and the rights to ask for a certificate and to have it approved, under the names that
//! kubeadm has for them.

use std::time::Duration;

use jiff::SignedDuration;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use k8s_openapi::api::rbac::v1::{ClusterRoleBinding, Role, RoleBinding};
use kube::api::Patch;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use steersman::{Client, Error, Object, ObjectKey, Result, clock};

use super::discovery::{CLUSTER_INFO, CONTENT, NAMESPACE};
use super::{Authorities, BootstrapToken};

/// The group of those who join.
const GROUP: &str = "system:bootstrappers:kubeadm:default-node-token";
const RBAC: &str = "rbac.authorization.k8s.io";

/// Lets machines join a cluster.
#[derive(Clone, Debug)]
pub struct Invitation {
    /// What they say.
    pub token: BootstrapToken,
    /// For how long it counts; without a limit if there is none.
    pub ttl: Option<Duration>,
    /// What people are told of it.
    pub description: Option<String>,
    /// How machines reach the API server.
    pub server: String,
    /// Who signs for it.
    pub authorities: Authorities,
}

/// A machine that may join.
#[derive(Clone, Debug)]
pub struct Invited {
    /// What is typed there.
    pub command: String,
}

impl Invitation {
    /// Writes all that is needed, and tells what to do on the machine.
    pub async fn write(&self, client: &Client) -> Result<Invited> {
        for (name, role, group) in [
            ("kubelet-bootstrap", "system:node-bootstrapper", GROUP),
            ("node-autoapprove-bootstrap", &approval("nodeclient"), GROUP),
            ("node-autoapprove-certificate-rotation", &approval("selfnodeclient"), "system:nodes"),
        ] {
            create::<ClusterRoleBinding>(client, binding(name, role, group)).await?;
        }
        let (role, bound) = public_role();
        create::<Role>(client, role).await?;
        create::<RoleBinding>(client, bound).await?;
        self.tell(client).await?;
        let secret: Secret = object(self.secret())?;
        client.create(&secret).await?;
        Ok(Invited { command: self.command() })
    }

    /// Says in public where the cluster is and who signs for it.
    async fn tell(&self, client: &Client) -> Result<()> {
        let said = json!({CONTENT: self.kubeconfig()});
        let map = json!({"metadata": {"name": CLUSTER_INFO, "namespace": NAMESPACE}, "data": said});
        if create::<ConfigMap>(client, map).await? {
            return Ok(());
        }
        let key = ObjectKey::namespaced(NAMESPACE, CLUSTER_INFO);
        let patch = Patch::Merge(json!({"data": said}));
        client.patch::<ConfigMap, _>(&key, &patch).await.map(drop)
    }

    fn kubeconfig(&self) -> String {
        let (server, data) = (&self.server, self.authorities.data());
        format!(
            "apiVersion: v1\nclusters:\n- cluster:\n    certificate-authority-data: {data}\n    \
             server: {server}\n  name: \"\"\ncontexts: null\ncurrent-context: \"\"\nkind: Config\n\
             preferences: {{}}\nusers: null\n"
        )
    }

    fn secret(&self) -> Value {
        let BootstrapToken { id, secret } = &self.token;
        let mut data = json!({
            "token-id": id,
            "token-secret": secret,
            "usage-bootstrap-authentication": "true",
            "usage-bootstrap-signing": "true",
            "auth-extra-groups": GROUP,
        });
        let end = self.ttl.and_then(|ttl| {
            let end = clock::now().checked_add(SignedDuration::try_from(ttl).ok()?).ok()?;
            jiff::Timestamp::from_second(end.as_second()).ok()
        });
        if let Some(end) = end {
            data["expiration"] = json!(end.to_string());
        }
        if let Some(description) = &self.description {
            data["description"] = json!(description);
        }
        json!({
            "metadata": {"name": format!("bootstrap-token-{id}"), "namespace": "kube-system"},
            "type": "bootstrap.kubernetes.io/token",
            "stringData": data,
        })
    }

    fn command(&self) -> String {
        let Self { server, token, .. } = self;
        let hashes = self.authorities.hashes();
        let hashes = hashes.iter().map(|hash| format!(" --discovery-token-ca-cert-hash {hash}"));
        let hashes: String = hashes.collect();
        format!("steersman node --server {server} --token {token}{hashes}")
    }
}

/// The role of those whose requests of a kind are approved.
fn approval(kind: &str) -> String {
    format!("system:certificates.k8s.io:certificatesigningrequests:{kind}")
}

fn binding(name: &str, role: &str, group: &str) -> Value {
    json!({
        "metadata": {"name": format!("kubeadm:{name}")},
        "roleRef": {"apiGroup": RBAC, "kind": "ClusterRole", "name": role},
        "subjects": [{"apiGroup": RBAC, "kind": "Group", "name": group}],
    })
}

/// Lets everybody read what the cluster says in public.
fn public_role() -> (Value, Value) {
    let metadata = json!({"name": "kubeadm:bootstrap-signer-clusterinfo", "namespace": NAMESPACE});
    let rule = json!({
        "apiGroups": [""],
        "resources": ["configmaps"],
        "resourceNames": [CLUSTER_INFO],
        "verbs": ["get"],
    });
    let anybody = json!({"apiGroup": RBAC, "kind": "User", "name": "system:anonymous"});
    let role = json!({"apiGroup": RBAC, "kind": "Role", "name": metadata["name"]});
    (
        json!({"metadata": metadata, "rules": [rule]}),
        json!({"metadata": metadata, "roleRef": role, "subjects": [anybody]}),
    )
}

/// Creates an object unless there is one of its name, and tells whether it has.
async fn create<K: Object + DeserializeOwned>(client: &Client, written: Value) -> Result<bool> {
    match client.create(&object::<K>(written)?).await {
        Ok(_) => Ok(true),
        Err(error) if error.is_already_exists() => Ok(false),
        Err(error) => Err(error),
    }
}

fn object<K: DeserializeOwned>(written: Value) -> Result<K> {
    serde_json::from_value(written).map_err(Error::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_invitation_is_what_kubeadm_would_write() {
        let key = rcgen::KeyPair::generate().unwrap();
        let certificate = rcgen::CertificateParams::default().self_signed(&key).unwrap();
        let authorities = Authorities::from_pem(certificate.pem().as_bytes()).unwrap();
        let invitation = Invitation {
            token: "abcdef.0123456789abcdef".parse().unwrap(),
            ttl: None,
            description: None,
            server: "https://10.0.0.1:6443".into(),
            authorities,
        };
        let secret = invitation.secret();
        assert_eq!(secret["metadata"]["name"], "bootstrap-token-abcdef");
        assert_eq!(secret["stringData"].get("expiration"), None);
        let said = kube::config::Kubeconfig::from_yaml(&invitation.kubeconfig()).unwrap();
        let cluster = said.clusters[0].cluster.as_ref().unwrap();
        assert_eq!(cluster.server.as_deref(), Some("https://10.0.0.1:6443"));
        let hash = &invitation.authorities.hashes()[0];
        assert_eq!(
            invitation.command(),
            format!(
                "steersman node --server https://10.0.0.1:6443 --token abcdef.0123456789abcdef \
                 --discovery-token-ca-cert-hash {hash}"
            )
        );
    }
}
