//! Who owns which key: consistent hashing over a view.
//!
//! Members stand at many points of a circle of hashes; a key belongs to the first member at or
//! after its own hash. All replicas must agree on this, also those of other versions: the hash is
//! FNV-1a with 64 bits, mixed once by the finaliser of SplitMix64 (FNV alone spreads similar
//! names badly), and neither it nor the number of points may change.

use std::sync::Arc;

use crate::object::ObjectKey;

/// At how many points each member stands: shares then differ by about a tenth.
const POINTS: usize = 128;

/// A set of members, by the names of their Leases.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct View(Arc<[Arc<str>]>);

impl View {
    pub(super) fn members(&self) -> &[Arc<str>] {
        &self.0
    }

    /// As it stands in a Lease.
    pub(super) fn parse(text: &str) -> Self {
        text.split(',').filter(|name| !name.is_empty()).map(Into::into).collect()
    }

    /// As it stands in a Lease.
    pub(super) fn text(&self) -> String {
        self.0.join(",")
    }
}

impl FromIterator<Arc<str>> for View {
    fn from_iter<I: IntoIterator<Item = Arc<str>>>(members: I) -> Self {
        let mut members: Vec<Arc<str>> = members.into_iter().collect();
        members.sort();
        members.dedup();
        Self(members.into())
    }
}

/// The circle that a view makes.
pub(super) struct Ring {
    view: View,
    /// Hashes in ascending order, each with its member's place in the view.
    points: Vec<(u64, usize)>,
}

impl Ring {
    pub(super) fn new(view: View) -> Self {
        let members = view.members().iter().enumerate();
        let mut points: Vec<(u64, usize)> = members
            .flat_map(|(place, member)| {
                (0..POINTS).map(move |point| {
                    let point = point.to_be_bytes();
                    (hash([member.as_bytes(), b"#", &point]), place)
                })
            })
            .collect();
        points.sort_unstable();
        Self { view, points }
    }

    pub(super) fn view(&self) -> &View {
        &self.view
    }

    /// Whose keys with this hash are; nobody's in a view without members.
    pub(super) fn owner(&self, hash: u64) -> Option<&Arc<str>> {
        let after = self.points.partition_point(|(point, _)| *point < hash);
        let (_, place) = self.points.get(after).or_else(|| self.points.first())?;
        self.view.members().get(*place)
    }
}

/// Where a key stands on the circle.
pub(super) fn hash_of(key: &ObjectKey) -> u64 {
    let namespace = key.namespace.as_deref().unwrap_or_default();
    hash([namespace.as_bytes(), b"/", key.name.as_bytes()])
}

/// A stable hash of these bytes, one after the other.
pub(super) fn hash<'a>(parts: impl IntoIterator<Item = &'a [u8]>) -> u64 {
    let mut hash: u64 = 0xcbf2_9ce4_8422_2325;
    for byte in parts.into_iter().flatten() {
        hash = (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
    }
    hash = (hash ^ (hash >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    hash = (hash ^ (hash >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    hash ^ (hash >> 31)
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;

    fn view(members: &[&str]) -> View {
        members.iter().map(|member| Arc::from(*member)).collect()
    }

    fn owners(members: &[&str]) -> Vec<String> {
        let ring = Ring::new(view(members));
        let keys = (0..10_000).map(|n| ObjectKey::namespaced("default", format!("object-{n}")));
        keys.map(|key| ring.owner(hash_of(&key)).unwrap().to_string()).collect()
    }

    #[test]
    fn the_hash_never_changes() {
        assert_eq!(hash_of(&ObjectKey::from("default/a")), 0xb498_ee9f_a3fd_2e0b);
        let ring = Ring::new(view(&["a", "b", "c"]));
        let owner = |key: &str| ring.owner(hash_of(&ObjectKey::from(key))).unwrap().to_string();
        assert_eq!(["x/1", "x/2", "x/3", "x/4", "x/5"].map(owner), ["c", "b", "c", "a", "b"]);
    }

    #[test]
    fn members_get_similar_shares() {
        let mut shares = HashMap::<String, usize>::new();
        for owner in owners(&["a", "b", "c", "d"]) {
            *shares.entry(owner).or_default() += 1;
        }
        assert!(shares.values().all(|share| (1900..3200).contains(share)), "{shares:?}");
    }

    #[test]
    fn only_the_keys_of_who_comes_or_goes_move() {
        let four = owners(&["a", "b", "c", "d"]);
        let five = owners(&["a", "b", "c", "d", "e"]);
        let moved: Vec<_> = four.iter().zip(&five).filter(|(old, new)| old != new).collect();
        assert!(moved.iter().all(|(_, new)| *new == "e"));
        assert!((1200..2800).contains(&moved.len()), "{}", moved.len());
    }

    #[test]
    fn a_view_is_written_sorted_and_read_back() {
        let view = view(&["b", "a", "b"]);
        assert_eq!(view.text(), "a,b");
        assert_eq!(View::parse("a,b"), view);
        assert_eq!(View::parse(""), View::default());
        assert!(Ring::new(View::default()).owner(7).is_none());
    }
}
