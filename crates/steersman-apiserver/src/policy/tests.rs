use std::sync::Arc;

use jiff::Timestamp;
use serde_json::Value;
use steersman_rules::metadata;
use steersman_rules::resource::Place;
use steersman_store::memory::MemoryStore;
use steersman_store::{Expected, Store, WriteRequest};

use super::wanted::policy;
use super::{Kinds, fresh};
use crate::write::create::create_object;
use crate::write::{Tracking, Writer};
use crate::{ApiServer, Config};

/// The object without what is new about it, and without what only the policy writes right away:
/// gathered rules.
fn as_sent(stored: &Value, gathers: bool) -> Value {
    let mut object = stored.clone();
    for field in ["uid", "creationTimestamp", "managedFields"] {
        metadata::set(&mut object, field, None);
    }
    if gathers {
        object["rules"] = Value::Null;
    }
    object
}

#[tokio::test]
async fn what_is_written_is_what_a_create_would_store() {
    let store = MemoryStore::new();
    let clock = Arc::new(|| Timestamp::UNIX_EPOCH);
    let api = ApiServer::start(Config::new(Arc::new(store.clone()), clock)).await.unwrap();
    let server = api.server();
    let kinds = Kinds::of(server).unwrap();
    for wanted in policy(&|_, _| false) {
        let resource = kinds.resource(&wanted);
        let key = resource.key(Place { namespace: wanted.namespace(), name: wanted.name() });
        let entry = store.get(&key).await.unwrap().unwrap();
        let gathers = wanted.gathers().is_some();
        assert!(fresh::is_untouched(&wanted, &entry.value));
        let mut written: Value = serde_json::from_slice(&entry.value).unwrap();
        store.write(WriteRequest::delete(key.as_str(), Expected::Any)).await.unwrap();
        let writer = Writer::internal(server, resource);
        let object = as_sent(&written, gathers);
        create_object(&writer, wanted.namespace(), object, Tracking::Record).await.unwrap();
        let again = store.get(&key).await.unwrap().unwrap();
        let created: Value = serde_json::from_slice(&again.value).unwrap();
        let uid = |object: &Value| metadata::text(object, "uid").to_owned();
        if gathers {
            written["rules"] = Value::Null;
            written["metadata"]["managedFields"].as_array_mut().unwrap().remove(0);
            metadata::set(&mut written, "uid", Some(uid(&created).into()));
            assert_eq!(written, created);
            continue;
        }
        let bytes = String::from_utf8_lossy(&entry.value).replace(&uid(&written), &uid(&created));
        assert_eq!(bytes, String::from_utf8_lossy(&again.value));
    }
}
