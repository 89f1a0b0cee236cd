//! How many keys each folder holds now, so that the first page of a list can say how many
//! objects follow without walking over them.
//!
//! The folder of a key is everything up to its last slash. There are few: one a kind and
//! namespace.

use std::collections::BTreeMap;
use std::ops::Bound;

/// The number of keys right below each folder; none is zero.
#[derive(Clone, Debug, Default)]
pub(super) struct Folders(BTreeMap<Box<str>, usize>);

impl Folders {
    /// Counts a key that came to be.
    pub(super) fn add(&mut self, key: &str) {
        match self.0.get_mut(of(key)) {
            Some(count) => *count += 1,
            None => {
                self.0.insert(of(key).into(), 1);
            }
        }
    }

    /// Stops to count a key that is gone.
    pub(super) fn remove(&mut self, key: &str) {
        let Some(count) = self.0.get_mut(of(key)) else { return };
        *count -= 1;
        if *count == 0 {
            self.0.remove(of(key));
        }
    }

    /// Whether no key has this prefix, which ends a folder. Every write asks this of folders that
    /// few clusters fill, so it is answered without a look at the keys.
    pub(super) fn is_empty(&self, prefix: &str) -> bool {
        prefix.ends_with('/') && {
            let mut below = self.0.range::<str, _>((Bound::Included(prefix), Bound::Unbounded));
            below.next().is_none_or(|(folder, _)| !folder.starts_with(prefix))
        }
    }

    /// How many keys have this prefix, if it ends a folder and so never cuts one in two.
    pub(super) fn count(&self, prefix: &str) -> Option<usize> {
        if !(prefix.is_empty() || prefix.ends_with('/')) {
            return None;
        }
        let below = self.0.range::<str, _>((Bound::Included(prefix), Bound::Unbounded));
        let below = below.take_while(|(folder, _)| folder.starts_with(prefix));
        Some(below.map(|(_, count)| count).sum())
    }
}

/// The folder of a key, with its slash.
fn of(key: &str) -> &str {
    key.rfind('/').map_or("", |slash| &key[..=slash])
}

#[cfg(test)]
mod tests {
    use super::Folders;

    #[test]
    fn a_folder_counts_what_lies_below_it_at_any_depth() {
        let mut folders = Folders::default();
        for key in ["/pods/a/1", "/pods/a/2", "/pods/b/1", "/podsets/a/1", "loose"] {
            folders.add(key);
        }
        folders.remove("/pods/b/1");
        assert_eq!(folders.count("/pods/"), Some(2));
        assert_eq!(folders.count("/pods/b/"), Some(0));
        assert_eq!(folders.count(""), Some(4));
        assert_eq!(folders.count("/pods"), None);
        assert!(folders.is_empty("/pods/b/") && folders.is_empty("/services/"));
        assert!(!folders.is_empty("/pods/") && !folders.is_empty("/pods/a/"));
        assert!(!folders.is_empty("/nothing"), "what cuts a folder in two has to be looked for");
    }
}
