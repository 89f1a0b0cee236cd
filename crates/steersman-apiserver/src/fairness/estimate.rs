//! How much work a request is, before it is served: as Kubernetes estimates it.

use std::time::Duration;

use super::work::Work;
use crate::authz::{Attributes, Target};
use crate::lookup::Stock;
use crate::request::Query;

/// So many bytes of a list take one seat.
const BYTES_PER_SEAT: u64 = 100_000;

/// A list is written piece by piece: it is not held as a whole.
const LIST_BYTES_MAX: u64 = 1_000_000;

/// So many watches that hear of a write take one seat.
const WATCHES_PER_SEAT: u32 = 10;

/// The most seats of one request.
const WIDTH_MAX: u32 = 10;

/// How long watchers take to hear of a write.
const EVENT: Duration = Duration::from_millis(5);

/// What a request may turn out to be, by what it asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sort {
    /// It reads many objects.
    Many(Reach),
    /// It is a write that watchers hear of.
    Write,
    /// It is neither.
    Small,
}

/// How many objects a request that reads many of them may have to do with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Reach {
    /// How many it wants at most.
    limit: u64,
    /// Whether it wants only some of those that it looks at.
    selects: bool,
}

impl Reach {
    const ONE: Self = Self { limit: 1, selects: false };
    const ALL: Self = Self { limit: u64::MAX, selects: false };

    /// How many of those that are stored it looks at.
    pub(crate) fn looked_at(self, stored: u64) -> u64 {
        if self.selects { stored } else { stored.min(self.limit) }
    }

    /// How many of them are in memory at once, as Kubernetes reckons.
    fn loaded(self, stored: u64) -> u64 {
        let limited = stored.min(self.limit);
        if self.selects { limited.max(stored / 2) } else { limited }
    }
}

impl Sort {
    /// The sort of a request.
    pub(crate) fn of(asked: &Attributes<'_>, query: &Query) -> Self {
        let Target::Resource { resource, subresource, name, .. } = asked.target else {
            return Self::Small;
        };
        match asked.verb {
            // The name may come from a field selector: then one object is read.
            "list" if !name.is_empty() => Self::Many(Reach::ONE),
            "list" => Self::Many(reach(query)),
            "watch" if !begins_with_state(query) => Self::Small,
            "watch" if !name.is_empty() => Self::Many(Reach::ONE),
            "watch" => Self::Many(Reach::ALL),
            "create" if (resource, subresource) == ("serviceaccounts", "token") => Self::Small,
            "create" | "update" | "patch" | "delete" => Self::Write,
            _ => Self::Small,
        }
    }
}

/// How many objects a list has to do with. A selector has to look at all of them.
fn reach(query: &Query) -> Reach {
    let selects = query.text("labelSelector").is_some() || query.text("fieldSelector").is_some();
    let limit = query.number("limit").ok().flatten().and_then(|limit| u64::try_from(limit).ok());
    match limit.filter(|limit| *limit > 0) {
        Some(limit) => Reach { limit, selects },
        None => Reach::ALL,
    }
}

/// Whether a watch begins with all that there is.
fn begins_with_state(query: &Query) -> bool {
    query.flag("sendInitialEvents").unwrap_or(false)
        || matches!(query.text("resourceVersion"), None | Some("0"))
}

/// The work of a request that reads many objects.
pub(crate) fn of_many(reach: Reach, stock: Stock, width_max: u32) -> Work {
    let bytes = reach.loaded(stock.objects).saturating_mul(stock.size).min(LIST_BYTES_MAX);
    let seats = bytes.div_ceil(BYTES_PER_SEAT).min(u64::from(WIDTH_MAX.min(width_max)));
    Work::seats(u32::try_from(seats).unwrap_or(WIDTH_MAX).max(1))
}

/// The work of a write of which so many watches hear.
pub(crate) fn of_write(watches: u32, width_max: u32) -> Work {
    if watches < WATCHES_PER_SEAT {
        return Work::ONE;
    }
    let last = watches.div_ceil(WATCHES_PER_SEAT);
    Work { last, lasting: EVENT, ..Work::ONE }.within(WIDTH_MAX.min(width_max).max(1))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{Reach, Sort, of_many, of_write};
    use crate::authz::{Attributes, Target};
    use crate::fairness::work::Work;
    use crate::lookup::Stock;
    use crate::request::Query;
    use crate::user::User;

    #[test]
    fn lists_and_watches_that_begin_with_everything_are_wide() {
        let jane = User::known("jane", &[]);
        for (verb, name, query, expected) in [
            ("get", "x", "", Sort::Small),
            ("list", "", "", Sort::Many(Reach::ALL)),
            ("list", "", "limit=500", Sort::Many(Reach { limit: 500, selects: false })),
            (
                "list",
                "",
                "limit=500&labelSelector=a",
                Sort::Many(Reach { limit: 500, selects: true }),
            ),
            ("list", "x", "", Sort::Many(Reach::ONE)),
            ("watch", "", "", Sort::Many(Reach::ALL)),
            ("watch", "x", "resourceVersion=0", Sort::Many(Reach::ONE)),
            ("watch", "", "resourceVersion=7", Sort::Small),
            ("watch", "", "resourceVersion=7&sendInitialEvents=true", Sort::Many(Reach::ALL)),
            ("create", "", "", Sort::Write),
            ("deletecollection", "", "", Sort::Small),
        ] {
            let resource = "pods";
            let target =
                Target::Resource { group: "", resource, subresource: "", namespace: "a", name };
            let asked = Attributes::new(&jane, verb, target);
            assert_eq!(Sort::of(&asked, &Query::parse(query)), expected, "{verb} {name} {query}");
        }
    }

    #[test]
    fn seats_follow_from_bytes_and_watches() {
        let first = |limit| Reach { limit, selects: false };
        let some = |limit| Reach { limit, selects: true };
        for (reach, objects, size, width_max, expected) in [
            (Reach::ALL, 0, 1_000, 8, 1),
            (Reach::ALL, 100, 1_000, 8, 1),
            (Reach::ALL, 101, 1_000, 8, 2),
            (Reach::ALL, 1, 1_000_000, 100, 10),
            (Reach::ALL, 50_000, 2_000, 8, 8),
            (Reach::ALL, 50_000, 2_000, 100, 10),
            (Reach::ALL, 50_000, 2_000, 0, 1),
            (first(100), 50_000, 2_000, 100, 2),
            (some(100), 1_000, 1_000, 100, 5),
            (Reach::ONE, 50_000, 300_000, 100, 3),
        ] {
            let stock = Stock { objects, size };
            assert_eq!(
                of_many(reach, stock, width_max),
                Work::seats(expected),
                "{reach:?} {stock:?}"
            );
        }
        let ms = Duration::from_millis;
        for (watches, width_max, last, lasting) in [
            (0, 8, 0, ms(0)),
            (9, 8, 0, ms(0)),
            (10, 8, 1, ms(5)),
            (75, 8, 8, ms(5)),
            (160, 8, 8, ms(10)),
            (160, 100, 10, ms(8)),
        ] {
            assert_eq!(of_write(watches, width_max), Work { initial: 1, last, lasting });
        }
    }
}
