use super::*;

/// The state of these tests is written `value@revision`, a value alone, or `-` for nothing.
fn held(text: &str) -> Option<(Value, Revision)> {
    let (value, revision) = text.split_once('@')?;
    Some((value.parse().unwrap(), Revision(revision.parse().unwrap())))
}

fn read(asked: Moment, answered: Moment, told: &str) -> Step {
    Step { asked, answered, effect: Effect::Read(held(told)) }
}

/// A write of `next`, which says what it replaced.
fn write(asked: Moment, answered: Moment, next: &str, previous: &str) -> Step {
    let previous = held(previous);
    let expected = previous.map_or(Expected::Absent, |(_, revision)| Expected::Modified(revision));
    let (value, revision) = held(next).unwrap();
    let effect = Effect::Write { value: Some(value), expected, revision, previous };
    Step { asked, answered, effect }
}

fn delete(asked: Moment, answered: Moment, revision: u64, previous: &str) -> Step {
    let (expected, revision) = (Expected::Any, Revision(revision));
    let effect = Effect::Write { value: None, expected, revision, previous: held(previous) };
    Step { asked, answered, effect }
}

fn conflict(asked: Moment, answered: Moment, expected: Expected, found: u64) -> Step {
    let found = (found > 0).then_some(Revision(found));
    Step { asked, answered, effect: Effect::Conflict { value: Some(99), expected, found } }
}

fn maybe(asked: Moment, value: Value) -> Step {
    let effect = Effect::Maybe { value: Some(value), expected: Expected::Any };
    Step { asked, answered: Moment::MAX, effect }
}

fn is_linearizable(steps: &[Step]) -> bool {
    Search::new(steps.to_vec()).run().is_ok()
}

#[test]
fn one_after_the_other_is_an_order() {
    assert!(is_linearizable(&[]));
    assert!(is_linearizable(&[
        read(0, 1, "-"),
        write(2, 3, "1@2", "-"),
        read(4, 5, "1@2"),
        write(6, 7, "2@3", "1@2"),
        delete(8, 9, 4, "2@3"),
        read(10, 11, "-"),
        write(12, 13, "3@5", "-"),
    ]));
}

#[test]
fn a_read_during_a_write_may_see_it_or_not() {
    assert!(is_linearizable(&[write(0, 9, "1@2", "-"), read(1, 2, "-"), read(3, 4, "1@2")]));
    assert!(is_linearizable(&[write(0, 9, "1@2", "-"), read(1, 2, "1@2"), read(3, 4, "1@2")]));
    assert!(!is_linearizable(&[write(0, 9, "1@2", "-"), read(1, 2, "1@2"), read(3, 4, "-")]));
}

#[test]
fn a_read_after_a_write_must_see_it() {
    let created = write(0, 1, "1@2", "-");
    assert!(!is_linearizable(&[created.clone(), read(2, 3, "-")]));
    let updated = write(2, 3, "2@3", "1@2");
    assert!(!is_linearizable(&[created.clone(), updated.clone(), read(4, 5, "1@2")]));
    assert!(is_linearizable(&[created, updated, read(2, 5, "1@2")]));
}

#[test]
fn a_read_cannot_see_what_nobody_wrote_or_wrote_later() {
    assert!(!is_linearizable(&[read(0, 1, "1@2")]));
    assert!(!is_linearizable(&[read(0, 1, "1@2"), write(2, 3, "1@2", "-")]));
    assert!(!is_linearizable(&[write(0, 1, "1@2", "-"), read(2, 3, "1@3")]), "another revision");
}

#[test]
fn of_two_swaps_of_the_same_one_happens() {
    let created = write(0, 1, "1@2", "-");
    let (first, second) = (write(2, 9, "2@3", "1@2"), write(3, 8, "3@4", "1@2"));
    assert!(!is_linearizable(&[created.clone(), first.clone(), second]));
    let told = conflict(3, 8, Expected::Modified(Revision(2)), 3);
    assert!(is_linearizable(&[created, first, told]));
}

#[test]
fn a_conflict_needs_something_unexpected() {
    let created = write(0, 1, "1@2", "-");
    assert!(!is_linearizable(&[created.clone(), conflict(2, 3, Expected::Any, 2)]));
    assert!(!is_linearizable(&[
        created.clone(),
        conflict(2, 3, Expected::Modified(Revision(2)), 2)
    ]));
    assert!(!is_linearizable(&[created.clone(), conflict(2, 3, Expected::Absent, 0)]));
    assert!(is_linearizable(&[created, conflict(2, 3, Expected::Absent, 2)]));
}

#[test]
fn what_nobody_was_told_may_happen_late_or_never() {
    let created = write(0, 1, "1@2", "-");
    assert!(is_linearizable(&[created.clone(), maybe(2, 7), read(3, 4, "1@2")]));
    assert!(is_linearizable(&[created.clone(), maybe(2, 7), read(3, 4, "7@3")]));
    assert!(is_linearizable(&[
        created.clone(),
        maybe(2, 7),
        read(3, 4, "1@2"),
        read(5, 6, "7@3"),
        write(7, 8, "8@4", "7@3"),
    ]));
    assert!(!is_linearizable(&[
        created.clone(),
        maybe(2, 7),
        read(3, 4, "7@3"),
        read(5, 6, "1@2")
    ]));
    assert!(!is_linearizable(&[
        created.clone(),
        maybe(2, 7),
        read(3, 4, "7@3"),
        read(5, 6, "7@4")
    ]));
    assert!(
        !is_linearizable(&[created, read(2, 3, "7@3"), maybe(4, 7)]),
        "not before it was asked"
    );
}

#[test]
fn a_deleted_key_is_gone_and_its_value_does_not_come_back() {
    let (created, deleted) = (write(0, 1, "1@2", "-"), delete(2, 3, 3, "1@2"));
    assert!(is_linearizable(&[created.clone(), deleted.clone(), read(4, 5, "-")]));
    assert!(!is_linearizable(&[created.clone(), deleted.clone(), read(4, 5, "1@2")]));
    assert!(!is_linearizable(&[created, deleted.clone(), delete(4, 5, 4, "1@2")]));
    assert!(!is_linearizable(&[deleted]));
}

#[test]
fn many_at_once_are_searched_in_reasonable_time() {
    // Twenty writes at the same time, of which a chain of what they replaced gives the order, and
    // as many that nobody was told of, which can stand anywhere before the end.
    let mut steps: Vec<Step> = (0..20_u64)
        .map(|number| {
            let previous = if number == 0 { "-".into() } else { format!("{number}@{number}") };
            let next = number + 1;
            write(20 - number, 100 + number, &format!("{next}@{next}"), &previous)
        })
        .collect();
    steps.extend((0..8).map(|number| maybe(30 + number, 50 + number)));
    assert!(Search::new(steps.clone()).run().is_ok());
    steps.push(read(200, 201, "5@5"));
    let (explained, left) = Search::new(steps).run().unwrap_err();
    assert_eq!(explained.len() + left.len(), 29);
    assert!(left.contains(&read(200, 201, "5@5")));
}
