//! The five fields of a schedule: minute, hour, day of the month, month and day of the week, each a
//! set of values.

/// A set of values below 64; the highest bit says that the field was a star.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Values(u64);

const STAR: u64 = 1 << 63;

const MONTHS: &[&str] =
    &["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
const DAYS: &[&str] = &["sun", "mon", "tue", "wed", "thu", "fri", "sat"];

/// One of the five fields.
pub(super) struct Field {
    least: u32,
    most: u32,
    names: &'static [&'static str],
}

pub(super) const MINUTE: Field = Field { least: 0, most: 59, names: &[] };
pub(super) const HOUR: Field = Field { least: 0, most: 23, names: &[] };
pub(super) const DAY_OF_MONTH: Field = Field { least: 1, most: 31, names: &[] };
pub(super) const MONTH: Field = Field { least: 1, most: 12, names: MONTHS };
pub(super) const DAY_OF_WEEK: Field = Field { least: 0, most: 6, names: DAYS };

impl Values {
    pub(super) fn has(self, value: i8) -> bool {
        u32::try_from(value).is_ok_and(|value| self.0 & (1 << value) != 0)
    }

    pub(super) fn is_star(self) -> bool {
        self.0 & STAR != 0
    }
}

impl Field {
    /// Reads a list such as `1,5-9,*/15`.
    pub(super) fn parse(&self, text: &str) -> Result<Values, String> {
        let mut bits = 0;
        for part in text.split(',').filter(|part| !part.is_empty()) {
            bits |= self.part(part)?;
        }
        Ok(Values(bits))
    }

    fn part(&self, text: &str) -> Result<u64, String> {
        let (range, step) = match text.split('/').collect::<Vec<_>>()[..] {
            [range] => (range, None),
            [range, step] => (range, Some(number(step)?)),
            _ => return Err(format!("too many slashes: {text}")),
        };
        let (start, mut end, star) = match range.split('-').collect::<Vec<_>>()[..] {
            ["*" | "?", ..] => (self.least, self.most, true),
            [one] => (self.value(one)?, self.value(one)?, false),
            [start, end] => (self.value(start)?, self.value(end)?, false),
            _ => return Err(format!("too many hyphens: {text}")),
        };
        if step.is_some() && !range.contains('-') {
            end = self.most;
        }
        self.check(text, start, end, step)?;
        let step = step.unwrap_or(1);
        let stars = if star && step == 1 { STAR } else { 0 };
        let each = (start..=end).step_by(usize::try_from(step).unwrap_or(1));
        Ok(each.fold(stars, |bits, value| bits | 1 << value))
    }

    fn check(&self, text: &str, start: u32, end: u32, step: Option<u32>) -> Result<(), String> {
        let Self { least, most, .. } = self;
        if start < *least {
            return Err(format!("beginning of range ({start}) below minimum ({least}): {text}"));
        }
        if end > *most {
            return Err(format!("end of range ({end}) above maximum ({most}): {text}"));
        }
        if start > end {
            return Err(format!(
                "beginning of range ({start}) beyond end of range ({end}): {text}"
            ));
        }
        if step == Some(0) {
            return Err(format!("step of range should be a positive number: {text}"));
        }
        Ok(())
    }

    fn value(&self, text: &str) -> Result<u32, String> {
        let name = text.to_lowercase();
        match (0..).zip(self.names).find(|(_, known)| **known == name) {
            Some((position, _)) => Ok(self.least + position),
            None => number(text),
        }
    }
}

fn number(text: &str) -> Result<u32, String> {
    text.parse().map_err(|_| {
        format!("failed to parse int from {text}: strconv.Atoi: parsing {text:?}: invalid syntax")
    })
}
