//! The rules of the book, without a server.

mod counted;

use std::time::Duration;

use k8s_openapi::api::core::v1::ConfigMap;
use tokio::time::Instant;

use super::book::{Book, Moment, Write, Written};
use super::document::Document;
use super::identity::Identity;
use super::metrics::Loss;
use super::reporter::Reporter;
use super::{EventForm, NewEvent, Reference};
use crate::clock;

const MINUTE: Duration = Duration::from_secs(60);

/// A book at a time that the test decides.
struct Desk {
    book: Book,
    now: Moment,
    form: EventForm,
}

impl Desk {
    fn new() -> Self {
        Self::writing(EventForm::Series)
    }

    fn writing(form: EventForm) -> Self {
        let now = Moment { instant: Instant::now(), time: clock::now_micro_time() };
        Self { book: Book::default(), now, form }
    }

    fn wait(&mut self, time: Duration) {
        self.now.instant += time;
        self.now.time.0 += jiff::SignedDuration::try_from(time).unwrap();
    }

    fn say(&mut self, note: &str) -> Result<bool, Loss> {
        self.say_of("a", note)
    }

    fn say_of(&mut self, object: &str, note: &str) -> Result<bool, Loss> {
        let mut map = ConfigMap::default();
        map.metadata.name = Some(object.into());
        self.say_that(Reference::of(&map), NewEvent::normal("Because").action("Act").note(note))
    }

    fn say_that(&mut self, regarding: Reference, event: NewEvent) -> Result<bool, Loss> {
        let identity = Identity::new(Reporter::new("test").form(self.form), regarding, event);
        self.book.observe(identity, self.now.clone())
    }

    fn take(&mut self) -> Option<Write> {
        self.book.take_due(self.now.instant)
    }

    /// Writes whatever is due, and gives it back as `note×count`.
    fn write_all(&mut self) -> Vec<String> {
        let mut all = Vec::new();
        while let Some(write) = self.take() {
            all.push(shown(&write));
            self.finish(write, Written::Done);
        }
        all
    }

    fn finish(&mut self, write: Write, written: Written) -> Option<Loss> {
        self.book.finish(write, &written, self.now.instant)
    }
}

fn shown(write: &Write) -> String {
    let (note, count) = match &*write.task.event {
        Document::Series(event) => (&event.note, event.series.as_ref().map(|it| it.count)),
        Document::Counted(event) => (&event.message, event.count),
    };
    let verb = if write.task.exists { "update" } else { "create" };
    format!("{verb} {}×{}", note.as_deref().unwrap_or_default(), count.unwrap_or(1))
}

#[test]
fn the_first_is_created_the_second_updates_and_the_others_wait() {
    let mut desk = Desk::new();
    assert_eq!(desk.say("up"), Ok(true));
    assert_eq!(desk.write_all(), ["create up×1"]);
    desk.say("up").unwrap();
    assert_eq!(desk.write_all(), ["update up×2"]);
    for _ in 0..998 {
        desk.say("up").unwrap();
    }
    assert_eq!(desk.write_all(), Vec::<String>::new());
    desk.wait(Duration::from_secs(1));
    assert_eq!(desk.write_all(), ["update up×1000"]);
    assert_eq!(desk.book.len(), 1);
}

#[test]
fn what_happens_before_the_first_write_is_in_it() {
    let mut desk = Desk::new();
    desk.say("up").unwrap();
    desk.say("up").unwrap();
    assert_eq!(desk.write_all(), ["create up×2"]);
}

#[test]
fn a_series_that_goes_on_is_written_ever_less_often_and_ends_after_silence() {
    let mut desk = Desk::new();
    let mut writes = 0;
    for _ in 0..3600 {
        desk.say("up").unwrap();
        writes += desk.write_all().len();
        desk.wait(Duration::from_secs(1));
    }
    assert!((15..=25).contains(&writes), "{writes}");
    desk.wait(5 * MINUTE);
    assert_eq!(desk.write_all(), ["update up×3600"], "the last count is told");
    assert_eq!(desk.book.len(), 1);
    desk.wait(6 * MINUTE);
    desk.write_all();
    assert_eq!(desk.book.len(), 0);
    desk.say("up").unwrap();
    assert_eq!(desk.write_all(), ["create up×1"], "another series");
}

#[test]
fn many_notes_of_similar_events_are_combined() {
    let mut desk = Desk::new();
    for n in 0..200 {
        desk.say(&format!("note {n}")).unwrap();
    }
    let writes = desk.write_all();
    assert_eq!(writes.len(), 11);
    assert!(writes.contains(&"create note 9×1".to_owned()), "{writes:?}");
    let combined = "create (combined from similar events): note 10×190".to_owned();
    assert!(writes.contains(&combined), "{writes:?}");
    desk.say("note 3").unwrap();
    assert_eq!(desk.write_all(), ["update note 3×2"], "what has a series keeps it");
    desk.wait(11 * MINUTE);
    desk.write_all();
    desk.say("note 300").unwrap();
    assert_eq!(desk.write_all(), ["create note 300×1"], "after a while they count anew");
}

#[test]
fn few_series_begin_about_one_object_and_others_do_not_suffer() {
    let mut desk = Desk::new();
    let begun = |desk: &mut Desk, minutes: u32| {
        let mut begun = 0;
        for n in 0..40 {
            // Series end between the rounds, so that each begins anew.
            if desk.say(&format!("note {}", n % 5)).is_ok() {
                begun += desk.write_all().iter().filter(|w| w.starts_with("create")).count();
            }
            desk.wait(minutes * MINUTE);
            desk.write_all();
        }
        begun
    };
    assert_eq!(begun(&mut desk, 40), 40, "a bucket fills in time");
    for n in 0..25 {
        desk.wait(Duration::from_secs(1));
        desk.book.take_due(desk.now.instant);
        let mut map = ConfigMap::default();
        map.metadata.name = Some("b".into());
        let event = NewEvent::warning(format!("Reason{n}")).action("Act");
        let identity = Identity::new(Reporter::new("test"), Reference::of(&map), event);
        desk.book.observe(identity, desk.now.clone()).unwrap();
    }
    assert_eq!(desk.say_of("b", "one more"), Err(Loss::RateLimited));
    assert_eq!(desk.say_of("c", "another object"), Ok(true));
    desk.wait(5 * MINUTE);
    assert_eq!(desk.say_of("b", "one more"), Ok(true));
}

#[test]
fn a_failed_write_is_retried_with_growing_delays_until_it_is_given_up() {
    let mut desk = Desk::new();
    desk.say("up").unwrap();
    let start = desk.now.instant;
    let mut delays = Vec::new();
    let lost = loop {
        let write = desk.take().unwrap();
        if let Some(loss) = desk.finish(write, Written::Failed) {
            break loss;
        }
        let delay = desk.book.next_due().unwrap() - desk.now.instant;
        delays.push(delay);
        desk.wait(delay);
    };
    assert_eq!(lost, Loss::Failed);
    assert!(delays[0] < Duration::from_secs(2) && delays[4] >= Duration::from_secs(16));
    assert!(desk.now.instant - start > 4 * MINUTE, "{delays:?}");
    assert!(desk.take().is_none(), "nothing new to tell");
    desk.say("up").unwrap();
    desk.wait(5 * MINUTE);
    assert_eq!(desk.write_all(), ["create up×2"]);
}

#[test]
fn an_event_that_has_gone_is_created_again_with_its_count() {
    let mut desk = Desk::new();
    desk.say("up").unwrap();
    desk.write_all();
    desk.say("up").unwrap();
    let write = desk.take().unwrap();
    assert_eq!(desk.finish(write, Written::Missing), None);
    assert_eq!(desk.write_all(), ["create up×2"]);
}

#[test]
fn what_is_counted_during_a_write_is_written_next() {
    let mut desk = Desk::new();
    desk.say("up").unwrap();
    let write = desk.take().unwrap();
    desk.say("up").unwrap();
    assert!(desk.take().is_none(), "one write of a series at a time");
    desk.finish(write, Written::Done);
    assert_eq!(desk.write_all(), ["update up×2"]);
}

#[test]
fn a_full_book_drops_what_is_new_and_keeps_what_waits() {
    let mut desk = Desk::new();
    let all = (0..5000).map(|n| desk.say_of(&format!("object-{n}"), "up"));
    let lost = all.filter(|said| *said == Err(Loss::Full)).count();
    assert_eq!((lost, desk.book.len()), (5000 - 4096, 4096));
    desk.write_all();
    desk.wait(Duration::from_secs(1));
    assert_eq!(desk.say_of("new", "up"), Ok(true), "those that are told make room");
    assert_eq!(desk.book.len(), 4096);
}

#[test]
fn a_full_book_forgets_the_series_that_was_silent_for_longest() {
    let mut desk = Desk::new();
    for n in 0..4096 {
        desk.say_of(&format!("object-{n}"), "up").unwrap();
        desk.write_all();
        desk.wait(Duration::from_millis(10));
    }
    desk.say_of("object-0", "up").unwrap();
    assert_eq!(desk.write_all(), ["update up×2"]);
    desk.say_of("new", "up").unwrap();
    assert_eq!(desk.write_all(), ["create up×1"]);
    for (object, expected) in
        [("object-0", "update up×3"), ("object-4095", "update up×2"), ("object-1", "create up×1")]
    {
        desk.say_of(object, "up").unwrap();
        desk.wait(Duration::from_secs(1));
        assert_eq!(desk.write_all(), [expected], "{object}");
    }
    desk.wait(7 * MINUTE);
    assert_eq!(desk.write_all(), Vec::<String>::new());
    assert_eq!(desk.book.len(), 0, "all have ended");
}

#[test]
fn at_the_end_everything_unwritten_is_taken_whenever_it_was_due() {
    let mut desk = Desk::new();
    desk.say("told").unwrap();
    desk.write_all();
    for _ in 0..3 {
        desk.say("up").unwrap();
        desk.write_all();
    }
    desk.say("up").unwrap();
    assert!(desk.take().is_none());
    let left: Vec<String> =
        std::iter::from_fn(|| desk.book.take_unwritten()).map(|write| shown(&write)).collect();
    assert_eq!(left, ["update up×4"]);
}
