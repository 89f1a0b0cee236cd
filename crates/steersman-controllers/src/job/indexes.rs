//! Sets of completion indexes, written as Kubernetes writes them: `0,2-4,7`.

use std::fmt;

/// A set of completion indexes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Indexes {
    /// First and last of each interval, in order; intervals neither touch nor overlap.
    intervals: Vec<(u32, u32)>,
}

impl Indexes {
    /// Reads what is below `completions`. What cannot be read is left out.
    pub(super) fn parse(text: &str, completions: u32) -> Self {
        let mut indexes = Self::default();
        for part in text.split(',').filter(|part| !part.is_empty()) {
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            let (Ok(first), Ok(last)) = (first.parse::<u32>(), last.parse::<u32>()) else {
                continue;
            };
            if first < completions {
                indexes.insert(first, last.min(completions - 1));
            }
        }
        indexes
    }

    fn insert(&mut self, first: u32, last: u32) {
        if first <= last {
            self.intervals.push((first, last));
            self.join();
        }
    }

    /// Brings intervals into order, and joins those that touch.
    fn join(&mut self) {
        self.intervals.sort_unstable();
        let mut joined: Vec<(u32, u32)> = Vec::with_capacity(self.intervals.len());
        for (first, last) in self.intervals.drain(..) {
            match joined.last_mut() {
                Some(before) if first <= before.1.saturating_add(1) => {
                    before.1 = before.1.max(last);
                }
                _ => joined.push((first, last)),
            }
        }
        self.intervals = joined;
    }

    /// These, and those as well.
    pub(super) fn with(&self, others: impl IntoIterator<Item = u32>) -> Self {
        let mut all = self.clone();
        all.intervals.extend(others.into_iter().map(|index| (index, index)));
        all.join();
        all
    }

    /// These, and all of those.
    pub(super) fn merge(&self, others: &Self) -> Self {
        let mut all = self.clone();
        others.intervals.iter().for_each(|(first, last)| all.insert(*first, *last));
        all
    }

    pub(super) fn has(&self, index: u32) -> bool {
        let after = self.intervals.partition_point(|(_, last)| *last < index);
        self.intervals.get(after).is_some_and(|(first, _)| *first <= index)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.intervals.is_empty()
    }

    /// How many there are.
    pub(super) fn total(&self) -> u32 {
        self.intervals.iter().map(|(first, last)| last - first + 1).sum()
    }

    /// How many of these are in the other as well.
    pub(super) fn overlap(&self, other: &Self) -> u32 {
        let common = |(a, b): &(u32, u32)| {
            let in_both = other.intervals.iter().map(|(c, d)| {
                let (first, last) = ((*a).max(*c), (*b).min(*d));
                if first <= last { last - first + 1 } else { 0 }
            });
            in_both.sum::<u32>()
        };
        self.intervals.iter().map(common).sum()
    }

    /// The first indexes below `completions` that are not among these.
    pub(super) fn first_others(&self, count: usize, completions: u32) -> Vec<u32> {
        let mut found = Vec::new();
        let mut candidate = 0;
        let ends = [(completions, completions)];
        for (first, last) in self.intervals.iter().chain(&ends) {
            while candidate < (*first).min(completions) && found.len() < count {
                found.push(candidate);
                candidate += 1;
            }
            candidate = candidate.max(last.saturating_add(1));
        }
        found
    }
}

impl fmt::Display for Indexes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (n, (first, last)) in self.intervals.iter().enumerate() {
            let comma = if n > 0 { "," } else { "" };
            match last - first {
                0 => write!(f, "{comma}{first}")?,
                1 => write!(f, "{comma}{first},{last}")?,
                _ => write!(f, "{comma}{first}-{last}")?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn indexes_are_written_as_intervals() {
        for (given, completions, written) in [
            ("", 10, ""),
            ("0", 10, "0"),
            ("0,1", 10, "0,1"),
            ("0,1,2", 10, "0-2"),
            ("3-5,6,8", 10, "3-6,8"),
            ("0-20", 10, "0-9"),
            ("5,11,x,7-y", 10, "5"),
        ] {
            assert_eq!(Indexes::parse(given, completions).to_string(), written, "{given}");
        }
    }

    #[test]
    fn indexes_are_added_counted_and_found() {
        let indexes = Indexes::parse("1,3-4", 10);
        assert_eq!(indexes.with([2, 9, 3]).to_string(), "1-4,9");
        assert_eq!(indexes.with([]).to_string(), "1,3,4");
        assert_eq!(Indexes::default().with([7]).to_string(), "7");
        assert_eq!(indexes.merge(&Indexes::parse("0,5-6", 10)).to_string(), "0,1,3-6");
        assert_eq!((indexes.total(), indexes.has(3), indexes.has(2)), (3, true, false));
        assert_eq!(indexes.overlap(&Indexes::parse("2-3,9", 10)), 1);
        assert_eq!(indexes.first_others(3, 10), [0, 2, 5]);
        assert_eq!(indexes.first_others(9, 6), [0, 2, 5]);
        assert!(indexes.first_others(0, 10).is_empty() && !indexes.is_empty());
    }
}
