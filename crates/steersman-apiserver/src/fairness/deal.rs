//! Shuffle sharding: each flow has a hand of the queues of its level, and hardly ever shares all of
//! it with another flow. One that floods fills its own hand, and others have queues left.

/// The most cards of a hand: a hash has no bits for more.
const HAND_MAX: usize = 15;

/// How many queues there are, and how many of them a flow has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Deck {
    pub(super) queues: u32,
    pub(super) hand: u32,
}

/// The queues of one flow.
pub(super) struct Hand {
    cards: [u32; HAND_MAX],
    size: usize,
}

impl Hand {
    /// The queues, in the order in which they were dealt.
    pub(super) fn cards(&self) -> &[u32] {
        &self.cards[..self.size]
    }
}

impl Deck {
    /// Deals the hand that a hash stands for, all of its cards different: the same as Kubernetes
    /// deals.
    pub(super) fn deal(self, mut hash: u64) -> Hand {
        let size = usize::try_from(self.hand).unwrap_or(HAND_MAX).clamp(1, HAND_MAX);
        let mut rests = [0; HAND_MAX];
        for (dealt, rest) in (0..).zip(&mut rests[..size]) {
            let left = u64::from(self.queues.saturating_sub(dealt).max(1));
            *rest = u32::try_from(hash % left).unwrap_or(0);
            hash /= left;
        }
        let mut cards = [0; HAND_MAX];
        for (index, card) in cards[..size].iter_mut().enumerate() {
            // The n-th card is one of those that are left: count over the ones that are gone.
            *card = rests[index];
            for earlier in rests[..index].iter().rev() {
                *card += u32::from(*card >= *earlier);
            }
        }
        Hand { cards, size }
    }
}

#[cfg(test)]
mod tests {
    use super::Deck;

    #[test]
    fn a_hand_is_what_kubernetes_deals() {
        // By the arithmetic of k8s.io/apiserver/pkg/util/shufflesharding, done by hand.
        for (queues, hand, hash, expected) in [
            (8, 3, 0, vec![0, 1, 2]),
            (8, 3, 7, vec![7, 0, 1]),
            // 21 = 5 + 8 * 2, 2 = 2 + 7 * 0.
            (8, 3, 21, vec![5, 2, 0]),
            (1, 1, 12345, vec![0]),
        ] {
            let dealt = Deck { queues, hand }.deal(hash);
            assert_eq!(dealt.cards(), expected, "{queues} {hand} {hash}");
        }
    }

    #[test]
    fn no_card_is_dealt_twice_and_all_are_of_the_deck() {
        for hash in (0..10_000_u64).map(|seed| seed.wrapping_mul(0x9e37_79b9_7f4a_7c15)) {
            for (queues, hand) in [(128, 6), (64, 6), (16, 4), (15, 15), (2, 2)] {
                let dealt = Deck { queues, hand }.deal(hash);
                let mut cards = dealt.cards().to_vec();
                cards.sort_unstable();
                cards.dedup();
                assert_eq!(cards.len(), usize::try_from(hand).unwrap());
                assert!(cards.iter().all(|card| *card < queues));
            }
        }
    }
}
