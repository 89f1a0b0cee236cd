//! How much work a request is, before it is served: as Kubernetes estimates it.

use std::time::Duration;

use super::work::Work;
use crate::authz::{Attributes, Target};
use crate::request::Query;

/// So many objects of a list take one seat.
const OBJECTS_PER_SEAT: u64 = 100;

/// So many watches that hear of a write take one seat.
const WATCHES_PER_SEAT: u32 = 10;

/// The most seats of one request.
const WIDTH_MAX: u32 = 10;

/// How long watchers take to hear of a write.
const EVENT: Duration = Duration::from_millis(5);

/// What a request may turn out to be, by what it asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sort {
    /// It reads many objects, at most so many of them.
    Many(u64),
    /// It is a write that watchers hear of.
    Write,
    /// It is neither.
    Small,
}

impl Sort {
    /// The sort of a request.
    pub(crate) fn of(asked: &Attributes<'_>, query: &Query) -> Self {
        let Target::Resource { resource, subresource, name, .. } = asked.target else {
            return Self::Small;
        };
        match asked.verb {
            // The name may come from a field selector: then one object is read.
            "list" | "watch" if !name.is_empty() => Self::Small,
            "list" => Self::Many(most(query)),
            "watch" if begins_with_state(query) => Self::Many(u64::MAX),
            "create" if (resource, subresource) == ("serviceaccounts", "token") => Self::Small,
            "create" | "update" | "patch" | "delete" => Self::Write,
            _ => Self::Small,
        }
    }
}

/// How many objects a list looks at, at most. A selector has to look at all of them.
fn most(query: &Query) -> u64 {
    let selects = query.text("labelSelector").is_some() || query.text("fieldSelector").is_some();
    let limit = query.number("limit").ok().flatten().and_then(|limit| u64::try_from(limit).ok());
    limit.filter(|limit| *limit > 0 && !selects).unwrap_or(u64::MAX)
}

/// Whether a watch begins with all that there is.
fn begins_with_state(query: &Query) -> bool {
    query.flag("sendInitialEvents").unwrap_or(false)
        || matches!(query.text("resourceVersion"), None | Some("0"))
}

/// The work of a request that looks at so many objects.
pub(crate) fn of_many(objects: u64, width_max: u32) -> Work {
    let seats = objects.div_ceil(OBJECTS_PER_SEAT).min(u64::from(WIDTH_MAX.min(width_max)));
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

    use super::{Sort, of_many, of_write};
    use crate::authz::{Attributes, Target};
    use crate::fairness::work::Work;
    use crate::request::Query;
    use crate::user::User;

    #[test]
    fn lists_and_watches_that_begin_with_everything_are_wide() {
        let jane = User::known("jane", &[]);
        for (verb, name, query, expected) in [
            ("get", "x", "", Sort::Small),
            ("list", "", "", Sort::Many(u64::MAX)),
            ("list", "", "limit=500", Sort::Many(500)),
            ("list", "", "limit=500&labelSelector=a", Sort::Many(u64::MAX)),
            ("list", "x", "", Sort::Small),
            ("watch", "", "", Sort::Many(u64::MAX)),
            ("watch", "", "resourceVersion=0", Sort::Many(u64::MAX)),
            ("watch", "", "resourceVersion=7", Sort::Small),
            ("watch", "", "resourceVersion=7&sendInitialEvents=true", Sort::Many(u64::MAX)),
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
    fn seats_follow_from_objects_and_watches() {
        for (objects, width_max, expected) in
            [(0, 8, 1), (100, 8, 1), (101, 8, 2), (50_000, 8, 8), (50_000, 100, 10), (50_000, 0, 1)]
        {
            assert_eq!(of_many(objects, width_max), Work::seats(expected));
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
