//! Fair weather.

use super::*;

#[tokio::test(flavor = "multi_thread")]
async fn what_was_written_is_read_and_watched_and_there_after_a_restart() {
    let etcd = Etcd::start().await;
    let store = connect(&etcd).await;
    let mut replay = Replay::new(&store).await;
    let first = put(&store, "/registry/a", "1").await;
    let second = put(&store, "/registry/a", "2").await;
    let request = WriteRequest::delete("/registry/a", Expected::Modified(first));
    let conflict = store.write(request).await.unwrap_err();
    assert!(matches!(conflict, StoreError::Conflict { found, .. } if found == Some(second)));
    put(&store, "/registry/b", "3").await;
    let request = WriteRequest::delete("/registry/a", Expected::Modified(second));
    let deleted = store.write(request).await.unwrap();
    assert_eq!(deleted.previous.unwrap().value, "2");
    assert_eq!(store.get("/registry/b").await.unwrap().unwrap().value, "3");
    replay.assert_complete(&store).await;

    assert_equals_etcd(&store, &etcd).await;
    let again = connect(&etcd).await;
    let mut resumed = watch(&again, first).await;
    assert_eq!(resumed.next().await.unwrap().len(), 3, "history is there after a restart");
}

#[tokio::test(flavor = "multi_thread")]
async fn several_keys_of_one_transaction_are_told_together_and_others_keys_not_at_all() {
    let etcd = Etcd::start().await;
    let store = connect(&etcd).await;
    let mut replay = Replay::new(&store).await;
    let txn = "\nput /registry/a 1\nput /registry/b 1\nput /other 1\n\n\n";
    etcd.ctl_with_input(&["txn"], txn);
    let mut watch = watch(&store, Revision(1)).await;
    let batch = watch.next().await.unwrap();
    let told: Vec<_> = batch.iter().map(|event| (&*event.key, event.revision)).collect();
    assert_eq!(told, [("/registry/a", Revision(2)), ("/registry/b", Revision(2))]);
    etcd.ctl(&["put", "/other", "2"]);
    etcd.ctl(&["put", "/registry/c", "2"]);
    etcd.ctl(&["del", "--prefix", "/registry/"]);
    let (entries, revision) = list(&store).await;
    assert_eq!((entries.len(), revision), (0, Revision(5)));
    replay.assert_complete(&store).await;
    let refused = try_put(&store, "/other", "3").await.unwrap_err();
    assert!(matches!(refused, StoreError::Refused { .. }), "{refused}");
}
