//! The `JSONPath` of printer columns, as client-go reads and follows it.
//!
//! `.spec.x`, `.metadata.annotations.example\.com/key`, `['key']`, `[0]`, `[-1:]`, `[*]`,
//! `['a','b']`, `[?(@.type=="Ready")]` and `..name`. A name in brackets is read like one behind a
//! dot, so that dots end it there as well. A path that leads nowhere finds nothing; one that makes
//! no sense for an object, such as an index behind the end of a list, fails as a whole.

mod parse;

use std::cmp::Ordering;

use serde_json::{Map, Value};

/// How many values are looked at for one cell. With every `..` a path looks at all of an object
/// again, and may say so as often as its author likes.
const VISITS_MAX: usize = 100_000;

/// A parsed path; the empty one finds the object itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Path(Vec<Step>);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Step {
    /// `.name`
    Field(String),
    /// `.*`
    Wildcard,
    /// `[0]`, `[*]`, `[-1:]`
    Slice(Slice),
    /// `[0,'name']`
    Union(Vec<Vec<Step>>),
    /// `[?(@.ready)]`
    Filter(Filter),
    /// `..`: a value and all that is in it.
    Descent,
    /// A text, number or switch that stands in the path itself.
    Literal(Value),
    /// A word that means nothing.
    Word,
}

/// A part of a list. Bounds that are left out are those of the list; negative ones count from its
/// end.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Slice {
    from: Option<i64>,
    to: To,
    step: Option<i64>,
}

/// Where a slice ends.
#[derive(Clone, Debug, PartialEq, Eq)]
enum To {
    /// Behind its first item: it is an index.
    One,
    /// With the list.
    End,
    /// Before this.
    Before(i64),
}

/// The items of a list for which something holds.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Filter {
    left: Vec<Step>,
    /// What the left side must find; without it, the left side must find something.
    compared: Option<Compared>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Compared {
    operator: Operator,
    right: Vec<Step>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Operator {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    /// One that nobody knows, which matters once there is something to compare.
    Unknown,
}

impl Path {
    /// Reads a path; `None` where it says something that nobody understands.
    pub fn parse(text: &str) -> Option<Self> {
        parse::path(text).map(Self)
    }

    /// The first value it finds.
    pub fn first<'a>(&'a self, object: &'a Value) -> Option<&'a Value> {
        self.find(object)?.first().copied()
    }

    /// Everything it finds, in order; `None` if it makes no sense for this object.
    pub fn find<'a>(&'a self, object: &'a Value) -> Option<Vec<&'a Value>> {
        Walk { visits: VISITS_MAX }.follow(&self.0, vec![object])
    }
}

/// A way through an object. Its functions return `None` where the path makes no sense.
struct Walk {
    /// How many values may still be looked at.
    visits: usize,
}

impl Walk {
    fn follow<'a>(&mut self, steps: &'a [Step], from: Vec<&'a Value>) -> Option<Vec<&'a Value>> {
        steps.iter().try_fold(from, |values, step| self.step(step, values))
    }

    fn step<'a>(&mut self, step: &'a Step, values: Vec<&'a Value>) -> Option<Vec<&'a Value>> {
        self.visit(values.len())?;
        match step {
            Step::Field(name) => Some(values.into_iter().filter_map(|it| it.get(name)).collect()),
            Step::Wildcard => self.wildcard(&values),
            Step::Slice(slice) => self.slice(slice, &values),
            Step::Union(lists) => {
                let mut found = Vec::new();
                for steps in lists {
                    found.extend(self.follow(steps, values.clone())?);
                }
                Some(found)
            }
            Step::Filter(filter) => self.filter(filter, &values),
            Step::Descent => self.descent(values),
            Step::Literal(value) => Some(vec![value]),
            Step::Word => None,
        }
    }

    fn visit(&mut self, values: usize) -> Option<()> {
        self.visits = self.visits.checked_sub(values)?;
        Some(())
    }

    fn wildcard<'a>(&mut self, values: &[&'a Value]) -> Option<Vec<&'a Value>> {
        let mut found = Vec::new();
        for &value in values {
            self.visit(children(value).count())?;
            found.extend(children(value));
        }
        Some(found)
    }

    /// A part of a list that is empty ends the search in the lists that follow.
    fn slice<'a>(&mut self, slice: &Slice, values: &[&'a Value]) -> Option<Vec<&'a Value>> {
        let mut found = Vec::new();
        for &value in values {
            let items = match value {
                Value::Null => continue,
                Value::Array(items) => items,
                _ => return None,
            };
            let part = slice.of(items)?;
            if part.is_empty() {
                break;
            }
            self.visit(part.len())?;
            let step = usize::try_from(slice.step.unwrap_or(1)).ok().filter(|step| *step > 0)?;
            found.extend(part.iter().step_by(step));
        }
        Some(found)
    }

    fn filter<'a>(&mut self, filter: &'a Filter, values: &[&'a Value]) -> Option<Vec<&'a Value>> {
        let mut found = Vec::new();
        for &value in values {
            for item in value.as_array()? {
                if self.passes(filter, item)? {
                    found.push(item);
                }
            }
        }
        Some(found)
    }

    fn passes<'a>(&mut self, filter: &'a Filter, item: &'a Value) -> Option<bool> {
        self.visit(1)?;
        let left = self.follow(&filter.left, vec![item]);
        let Some(Compared { operator, right }) = &filter.compared else {
            // What makes no sense counts as found.
            return Some(left.is_none_or(|found| !found.is_empty()));
        };
        let left = left?;
        if left.is_empty() {
            return Some(false);
        }
        let right = self.follow(right, vec![item])?;
        match (left.as_slice(), right.as_slice()) {
            ([_], []) => Some(false),
            ([left], [right]) => operator.holds(left, right),
            // Nobody knows which of several is meant.
            _ => None,
        }
    }

    /// The values with all that is in them, what contains before what is contained. What contains
    /// nothing is left out, but texts are not.
    fn descent<'a>(&mut self, values: Vec<&'a Value>) -> Option<Vec<&'a Value>> {
        let mut found = Vec::new();
        let mut open = values;
        open.reverse();
        while let Some(value) = open.pop() {
            self.visit(1)?;
            let within: Vec<&Value> = children(value).collect();
            let is_text = value.as_str().is_some_and(|text| !text.is_empty());
            if is_text || !within.is_empty() {
                found.push(value);
            }
            open.extend(within.into_iter().rev());
        }
        Some(found)
    }
}

/// What is right below a value.
fn children(value: &Value) -> impl Iterator<Item = &Value> {
    let fields = value.as_object().into_iter().flat_map(Map::values);
    fields.chain(value.as_array().into_iter().flatten())
}

impl Slice {
    /// The items between the bounds, whatever the step; `None` if a bound is outside of the list.
    fn of<'a>(&self, items: &'a [Value]) -> Option<&'a [Value]> {
        let length = i64::try_from(items.len()).ok()?;
        let from_end = |bound: i64| if bound < 0 { bound + length } else { bound };
        let start = self.from.unwrap_or(0);
        let from = from_end(start);
        let to = match self.to {
            // Behind the last item there is no bound to count from the end.
            To::One if start == -1 => length,
            To::One => from_end(start.wrapping_add(1)),
            To::End => length,
            To::Before(end) => from_end(end),
        };
        if from == to {
            return Some(&[]);
        }
        items.get(usize::try_from(from).ok()?..usize::try_from(to).ok()?)
    }
}

impl Operator {
    /// Whether it holds between two values; those of different types cannot be compared.
    fn holds(self, left: &Value, right: &Value) -> Option<bool> {
        if let (Value::Bool(left), Value::Bool(right)) = (left, right) {
            return match self {
                Self::Equal => Some(left == right),
                Self::NotEqual => Some(left != right),
                _ => None,
            };
        }
        let order = order(left, right)?;
        match self {
            Self::Equal => Some(order.is_eq()),
            Self::NotEqual => Some(order.is_ne()),
            Self::Less => Some(order.is_lt()),
            Self::LessOrEqual => Some(order.is_le()),
            Self::Greater => Some(order.is_gt()),
            Self::GreaterOrEqual => Some(order.is_ge()),
            Self::Unknown => None,
        }
    }
}

/// The order of two texts or numbers; whole numbers are not compared with others.
fn order(left: &Value, right: &Value) -> Option<Ordering> {
    match (left, right) {
        (Value::String(left), Value::String(right)) => Some(left.cmp(right)),
        (Value::Number(left), Value::Number(right)) => match (left.as_i64(), right.as_i64()) {
            (Some(left), Some(right)) => Some(left.cmp(&right)),
            (None, None) => left.as_f64()?.partial_cmp(&right.as_f64()?),
            _ => None,
        },
        _ => None,
    }
}
