//! `OwnerReferencesPermissionEnforcement`: who may say who owns an object.

use serde_json::{Value, json};

use super::{why, with};
use crate::api::{Api, CONFIG_MAPS, config_map};
use crate::authorization::{bind, role, rule};

/// A server, and a user of it who may do this.
async fn start(rules: &[Value]) -> (Api, Api) {
    let api = with(&["OwnerReferencesPermissionEnforcement"]).await;
    role(&api, "default", "r", rules).await;
    bind(&api, "default", "Role", "r", "jane").await;
    let jane = api.acting_as("jane", &[]);
    (api, jane)
}

fn owner(kind: &str, blocks: bool) -> Value {
    json!({
        "apiVersion": "v1", "kind": kind, "name": "o", "uid": "u", "blockOwnerDeletion": blocks,
    })
}

fn owned(name: &str, owners: &[Value]) -> Value {
    let mut map = config_map(name, &json!({}));
    map["metadata"]["ownerReferences"] = json!(owners);
    map
}

fn owners(owners: &[Value]) -> Value {
    json!({"metadata": {"ownerReferences": owners}})
}

#[tokio::test(start_paused = true)]
async fn who_gives_an_object_an_owner_must_be_allowed_to_delete_it() {
    let maps = rule(&["create", "patch"], &[""], &["configmaps"]);
    let (_api, jane) = start(&[maps]).await;
    jane.post(CONFIG_MAPS, &owned("a", &[owner("Pod", false)])).await.ok();
    let path = format!("{CONFIG_MAPS}/a");
    jane.merge(&path, &json!({"data": {"a": "b"}})).await.ok();
    let refused = jane.merge(&path, &owners(&[])).await.refused(403);
    let text = "configmaps \"a\" is forbidden: cannot set an ownerRef on a resource you can't \
                delete: , <nil>";
    assert_eq!(why(&refused), text);
}

#[tokio::test(start_paused = true)]
async fn who_blocks_the_end_of_an_owner_must_be_allowed_to_finalize_it() {
    let maps = rule(&["create", "patch", "delete"], &[""], &["configmaps"]);
    let pods = rule(&["update"], &[""], &["pods/finalizers"]);
    let (api, jane) = start(&[maps, pods]).await;
    jane.post(CONFIG_MAPS, &owned("a", &[owner("Pod", true)])).await.ok();
    let refused = jane.post(CONFIG_MAPS, &owned("b", &[owner("Secret", true)])).await.refused(403);
    let text = "configmaps \"b\" is forbidden: cannot set blockOwnerDeletion if an ownerReference \
                refers to a resource you can't set finalizers on: , <nil>";
    assert_eq!(why(&refused), text);
    let refused = jane.post(CONFIG_MAPS, &owned("c", &[owner("Nothing", true)])).await.refused(403);
    let text = "configmaps \"c\" is forbidden: cannot set blockOwnerDeletion in this case because \
                cannot find RESTMapping for APIVersion v1 Kind Nothing: no matches for kind \
                \"Nothing\" in version \"v1\"";
    assert_eq!(why(&refused), text);
    jane.post(CONFIG_MAPS, &owned("d", &[owner("Secret", false)])).await.ok();
    let path = format!("{CONFIG_MAPS}/d");
    jane.merge(&path, &owners(&[owner("Secret", true)])).await.refused(403);
    api.merge(&path, &owners(&[owner("Secret", true)])).await.ok();
    // What blocks already may go on to.
    let pod = json!({"apiVersion": "v1", "kind": "Pod", "name": "o", "uid": "v"});
    jane.merge(&path, &owners(&[owner("Secret", true), pod])).await.ok();
}
