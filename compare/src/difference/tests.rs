use super::*;

fn answer(status: u16, body: &str) -> Answer {
    let headers = [("content-type".to_owned(), vec!["application/json".to_owned()])].into();
    Answer { status, headers, body: body.to_owned().into() }
}

fn found(step: &Step, theirs: &Answer, ours: &Answer) -> Vec<(Class, String)> {
    let masks = Masks { run: "zqtest".into(), address: "127.0.0.1:1".into() };
    let pair = Pair { step, theirs: (theirs, &masks), ours: (ours, &masks) };
    pair.differences().into_iter().map(|found| (found.class, found.place)).collect()
}

#[test]
fn answers_that_differ_only_in_what_servers_make_up_are_alike() {
    let theirs = answer(
        200,
        r#"{"metadata":{"uid":"0f8fad5b-d9cb-469f-a165-70867728950e","resourceVersion":"3"}}"#,
    );
    let ours = answer(
        200,
        r#"{"metadata":{"uid":"7c9e6679-7425-40de-944b-e07fc1f90ae7","resourceVersion":"9"}}"#,
    );
    assert_eq!(found(&Step::get("x", "/x"), &theirs, &ours), []);
}

#[test]
fn another_status_code_stands_for_what_follows_from_it() {
    let (theirs, ours) = (answer(404, r#"{"kind":"Status"}"#), answer(200, r#"{"kind":"Pod"}"#));
    let found = found(&Step::get("x", "/x"), &theirs, &ours);
    assert_eq!(found, [(Class::Status, String::new())]);
}

#[test]
fn reasons_messages_headers_and_fields_are_told_apart() {
    let status = |reason: &str, message: &str| {
        let status = serde_json::json!({"apiVersion": "v1", "kind": "Status", "reason": reason,
            "message": message, "details": {"kind": reason}});
        answer(400, &status.to_string())
    };
    let mut ours = status("Invalid", "b");
    ours.headers.insert("warning".into(), vec!["299 - \"x\"".into()]);
    let found = found(&Step::get("x", "/x"), &status("BadRequest", "a"), &ours);
    let expected = [
        (Class::Header, "warning"),
        (Class::Body, "details.kind"),
        (Class::Message, "message"),
        (Class::Reason, "reason"),
    ];
    assert_eq!(found, expected.map(|(class, place)| (class, place.to_owned())));
}

#[test]
fn events_are_compared_in_order_without_bookmarks_that_come_by_chance() {
    let step = Step::get("x", "/x").role(Role::Watch);
    let theirs = answer(
        200,
        "{\"type\":\"ADDED\",\"object\":{\"a\":1}}\n{\"type\":\"BOOKMARK\",\"object\":{}}\n",
    );
    let ours = answer(200, "{\"type\":\"ADDED\",\"object\":{\"a\":2}}\n");
    assert_eq!(found(&step, &theirs, &ours), [(Class::Watch, "ADDED a".to_owned())]);
    let none = answer(200, "");
    assert_eq!(found(&step, &theirs, &none), [(Class::Watch, "types".to_owned())]);
}

#[test]
fn discovery_is_compared_by_name_and_by_the_order_of_keys() {
    let step = Step::get("x", "/x").subject(Subject::Discovery);
    let theirs = answer(200, r#"{"resources":[{"name":"a","kind":"A"},{"name":"b","kind":"B"}]}"#);
    let ours = answer(200, r#"{"resources":[{"kind":"A","name":"a"}]}"#);
    let expected = [(Class::Discovery, "resources[b]"), (Class::Discovery, "order of keys")];
    assert_eq!(found(&step, &theirs, &ours), expected.map(|(c, place)| (c, place.to_owned())));
}
