use steersman_store::Expected;

use super::*;

/// A write of a value to key 0.
fn write(asked: u64, answered: u64, value: Value, revision: u64) -> Operation {
    let question = Question::Write { key: 0, value: Some(value), expected: Expected::Any };
    let answer = Answer::Written { revision: Revision(revision), previous: None };
    Operation { question, asked, answer: Some((answered, answer)) }
}

/// A range over the one key.
fn range(asked: u64, answered: u64, revision: u64, held: Option<(Value, u64)>) -> Operation {
    let held = held.map(|(value, modified)| Held { value, modified: Revision(modified) });
    let answer = Answer::State { revision: Revision(revision), keys: vec![held] };
    Operation { question: Question::Range, asked, answer: Some((answered, answer)) }
}

fn log<const N: usize>(changes: [(u64, Value); N]) -> Vec<Change> {
    let change =
        |(revision, value)| Change { revision: Revision(revision), key: 0, value: Some(value) };
    changes.map(change).to_vec()
}

#[test]
fn revisions_that_follow_time_and_the_log_pass() {
    let operations = [
        range(0, 1, 1, None),
        write(2, 5, 10, 3),
        write(3, 4, 20, 2),
        range(6, 7, 3, Some((10, 3))),
        range(2, 9, 2, Some((20, 2))),
    ];
    check(&operations, &log([(2, 20), (3, 10)])).unwrap();
}

#[test]
fn a_later_write_needs_a_later_revision() {
    let operations = [write(0, 1, 10, 3), write(2, 3, 20, 2)];
    assert!(check(&operations, &log([(2, 20), (3, 10)])).is_err());
    let after_a_range = [write(0, 9, 10, 2), range(1, 2, 3, None), write(3, 4, 20, 3)];
    assert!(check_time(&after_a_range).is_err());
}

#[test]
fn a_range_shows_no_earlier_revision_than_was_acknowledged() {
    let operations = [write(0, 1, 10, 2), range(2, 3, 1, None)];
    assert!(check_time(&operations).is_err());
    check_time(&[write(0, 2, 10, 2), range(1, 3, 1, None)]).unwrap();
}

#[test]
fn the_log_holds_what_was_acknowledged_once_and_nothing_else() {
    let written = write(0, 1, 10, 2);
    let unheard = Operation { answer: None, ..write(2, 3, 20, 3) };
    let operations = [written.clone(), unheard];
    check(&operations, &log([(2, 10)])).unwrap();
    check(&operations, &log([(2, 10), (3, 20)])).unwrap();
    assert!(check(&operations, &log([])).is_err(), "lost");
    assert!(check(&operations, &log([(2, 11)])).is_err(), "changed");
    assert!(check(&operations, &log([(2, 10), (3, 20), (4, 20)])).is_err(), "done twice");
    assert!(check(&operations, &log([(3, 20), (2, 10)])).is_err(), "out of order");
    assert!(check(&[written.clone(), written], &log([(2, 10)])).is_err(), "one revision for two");
}

#[test]
fn a_range_is_the_state_at_its_revision() {
    let changes = log([(2, 10), (5, 20)]);
    let writes = [write(0, 1, 10, 2), write(2, 3, 20, 5)];
    let with = |range: Operation| check(&[&writes[..], &[range]].concat(), &changes);
    with(range(1, 9, 4, Some((10, 2)))).unwrap();
    with(range(1, 9, 5, Some((20, 5)))).unwrap();
    assert!(with(range(1, 9, 5, Some((10, 2)))).is_err());
    assert!(with(range(1, 9, 4, Some((20, 5)))).is_err());
    assert!(with(range(1, 9, 5, None)).is_err());
}
