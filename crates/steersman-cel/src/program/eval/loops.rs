//! Comprehensions.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::{Answer, Local, Machine};
use crate::error::Error;
use crate::program::node::{Bind, Collect, Into, Loop, Quantifier};
use crate::value::{Key, List, Map, Value};

/// What a loop has gathered.
struct Collected<'a> {
    items: Vec<Value<'a>>,
    entries: BTreeMap<Key<'a>, (Value<'a>, Value<'a>)>,
}

/// What a loop goes over.
enum Range<'a> {
    List(List<'a>, usize),
    Keys(std::vec::IntoIter<Value<'a>>),
    Entries(std::vec::IntoIter<(Value<'a>, Value<'a>)>),
}

fn insert<'a>(
    entries: &mut BTreeMap<Key<'a>, (Value<'a>, Value<'a>)>,
    key: Value<'a>,
    value: Value<'a>,
) -> Result<(), Error> {
    let place = crate::value::usable_key(&key)?;
    if entries.contains_key(&place) {
        return Err(Error::new(format!("insert failed: key {key} already exists")));
    }
    entries.insert(place, (key, value));
    Ok(())
}

impl<'a> Machine<'a, '_> {
    /// Once per round of a loop.
    fn go_on(&mut self) -> Result<(), Error> {
        self.rounds = self.rounds.wrapping_add(1);
        if self.rounds.is_multiple_of(128) && self.budget.cancelled.is_some_and(|asked| asked()) {
            return Err(Error::cancelled());
        }
        Ok(())
    }

    /// What a loop goes over: for one variable elements or keys, for two both.
    fn range(&mut self, over: &'a Loop) -> Result<Range<'a>, Error> {
        match self.eval(&over.range)? {
            Value::List(list) => Ok(Range::List(list, 0)),
            Value::Map(map) if over.two => {
                let entries: Result<Vec<_>, Error> =
                    map.entries().map(|(key, value)| Ok((key, value?))).collect();
                Ok(Range::Entries(entries?.into_iter()))
            }
            Value::Map(map) => Ok(Range::Keys(map.keys().into_iter())),
            other => {
                Err(Error::new(format!("got '{}', expected iterable type", other.type_of().name())))
            }
        }
    }

    /// The next element into the variables; `false` at the end.
    fn advance(&mut self, range: &mut Range<'a>, over: &Loop) -> Result<bool, Error> {
        self.go_on()?;
        let (first, second) = match range {
            Range::Keys(keys) => match keys.next() {
                Some(key) => (key, None),
                None => return Ok(false),
            },
            Range::Entries(entries) => match entries.next() {
                Some((key, value)) => (key, Some(value)),
                None => return Ok(false),
            },
            Range::List(list, at) => {
                let Some(item) = list.get(*at) else { return Ok(false) };
                let index = Value::Int(i64::try_from(*at).unwrap_or(i64::MAX));
                *at += 1;
                if over.two { (index, Some(item?)) } else { (item?, None) }
            }
        };
        self.locals[over.place] = Local::Value(first);
        if let Some(second) = second {
            self.locals[over.place + 1] = Local::Value(second);
        }
        Ok(true)
    }

    /// Each round asks whether to go on (two, with `exists` three), then the accumulator (one) and
    /// the predicate; the result is asked for once.
    pub(super) fn quantifier(&mut self, quantifier: &'a Quantifier) -> Answer<'a> {
        let over = &quantifier.over;
        let mut range = self.range(over)?;
        let condition = if quantifier.all { 2 } else { 3 };
        let (mut failed, mut decided) = (None, false);
        while self.advance(&mut range, over)? {
            self.charge(condition)?;
            if decided {
                break;
            }
            self.charge(1)?;
            match self.eval(&over.body) {
                Ok(Value::Bool(answer)) => decided = answer != quantifier.all,
                Ok(_) => failed = failed.or_else(|| Some(Error::no_such_overload())),
                Err(error) if error.is_final() => return Err(error),
                Err(error) => failed = failed.or(Some(error)),
            }
        }
        self.charge(1)?;
        match failed {
            Some(error) if !decided => Err(error),
            _ => Ok(Value::Bool(decided != quantifier.all)),
        }
    }

    pub(super) fn one(&mut self, over: &'a Loop) -> Answer<'a> {
        let mut range = self.range(over)?;
        let (mut count, mut failed) = (0_u64, None);
        while self.advance(&mut range, over)? {
            let error = match self.eval(&over.body) {
                Ok(Value::Bool(true)) => {
                    self.charge(2)?;
                    count += 1;
                    continue;
                }
                Ok(Value::Bool(false)) => continue,
                Ok(_) => Error::no_such_overload(),
                Err(error) if error.is_final() => return Err(error),
                Err(error) => error,
            };
            failed.get_or_insert(error);
        }
        self.charge(2)?;
        failed.map_or(Ok(Value::Bool(count == 1)), Err)
    }

    /// A round that fails does not end the loop, as it does not in cel-go: it only costs.
    pub(super) fn collect(&mut self, collect: &'a Collect) -> Answer<'a> {
        let mut range = self.range(&collect.over)?;
        let mut collected = Collected { items: Vec::new(), entries: BTreeMap::new() };
        let mut failed = None;
        while self.advance(&mut range, &collect.over)? {
            if let Err(error) = self.collect_one(collect, &mut collected) {
                if error.is_final() {
                    return Err(error);
                }
                failed.get_or_insert(error);
            }
        }
        self.charge(1)?;
        if let Some(error) = failed {
            return Err(error);
        }
        Ok(match collect.into {
            Into::List => Value::list(collected.items),
            Into::Map | Into::Entries => Value::Map(Map::Owned(Arc::new(collected.entries))),
        })
    }

    fn collect_one(&mut self, collect: &'a Collect, into: &mut Collected<'a>) -> Result<(), Error> {
        match collect.filter.as_ref().map(|filter| self.eval(filter)).transpose()? {
            None | Some(Value::Bool(true)) => {}
            Some(Value::Bool(false)) => return Ok(()),
            Some(_) => return Err(Error::no_such_overload()),
        }
        let value = self.eval(&collect.over.body);
        self.charge(collect.step_cost)?;
        match (collect.into, value?) {
            (Into::List, value) => into.items.push(value),
            (Into::Map, value) => {
                let key = self.local(collect.over.place)?;
                insert(&mut into.entries, key, value)?;
            }
            (Into::Entries, Value::Map(map)) => {
                for (key, value) in map.entries() {
                    insert(&mut into.entries, key, value?)?;
                }
            }
            (Into::Entries, _) => return Err(Error::no_such_overload()),
        }
        Ok(())
    }

    pub(super) fn bind(&mut self, bind: &'a Bind) -> Answer<'a> {
        self.locals[bind.place] = Local::Lazy(&bind.init);
        self.eval(&bind.result)
    }
}
