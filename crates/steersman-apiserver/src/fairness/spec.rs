//! A `PriorityLevelConfiguration`, read: its share of the seats, and what becomes of requests for
//! which there is none.

use serde_json::Value;
use steersman_rules::metadata;

use super::deal::Deck;
use super::queues::Discipline;
use super::shares::Share;

/// The most of its nominal seats that one request of a level may have.
const WIDTH_PERCENT: u32 = 15;

/// What a priority level is to be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct LevelSpec {
    pub(super) name: String,
    pub(super) uid: String,
    pub(super) share: Share,
    pub(super) discipline: Discipline,
}

impl LevelSpec {
    /// Reads an object; none, if it does not say what it is.
    pub(super) fn of(object: &Value) -> Option<Self> {
        let spec = &object["spec"];
        let number = |value: &Value| value.as_u64().and_then(|number| u32::try_from(number).ok());
        let (said, discipline) = match spec["type"].as_str()? {
            "Exempt" => (&spec["exempt"], Discipline::Exempt),
            "Limited" => {
                let response = &spec["limited"]["limitResponse"];
                let queuing = &response["queuing"];
                let discipline = match response["type"].as_str()? {
                    "Queue" => Discipline::Queue {
                        deck: Deck {
                            queues: number(&queuing["queues"])?.max(1),
                            hand: number(&queuing["handSize"])?.max(1),
                        },
                        length_max: usize::try_from(queuing["queueLengthLimit"].as_u64()?).ok()?,
                    },
                    _ => Discipline::Reject,
                };
                (&spec["limited"], discipline)
            }
            _ => return None,
        };
        Some(Self {
            name: metadata::text(object, "name").to_owned(),
            uid: metadata::text(object, "uid").to_owned(),
            share: Share {
                shares: number(&said["nominalConcurrencyShares"]).unwrap_or(0),
                lendable_percent: number(&said["lendablePercent"]).unwrap_or(0),
                borrowing_percent: number(&said["borrowingLimitPercent"]),
            },
            discipline,
        })
    }

    /// How many seats one request may have where there are nominally so many.
    pub(super) fn width_max(&self, nominal: u32) -> u32 {
        match self.discipline {
            Discipline::Queue { deck, .. } => {
                (nominal * WIDTH_PERCENT).div_ceil(100).min(nominal / deck.hand).max(1)
            }
            _ => u32::MAX,
        }
    }
}
