//! Sets of indexes as text: `1,3-5,7`.

/// How many indexes there are in a text; the mistake in it otherwise.
pub(super) fn count(text: &str, completions: i64) -> Result<i64, String> {
    let mut total = 0;
    let mut last = None;
    for interval in intervals(text, completions) {
        let (first, end) = interval?;
        if let Some(last) = last.filter(|last| *last >= first) {
            return Err(format!("non-increasing order, previous: {last}, current: {first}"));
        }
        total += end - first + 1;
        last = Some(end);
    }
    Ok(total)
}

/// The first index that two texts have in common; mistakes in them are passed over.
pub(super) fn overlap(completed: &str, failed: &str, completions: i64) -> Option<i64> {
    let parse = |text: &str| -> Vec<(i64, i64)> {
        intervals(text, completions).filter_map(Result::ok).collect()
    };
    let completed = parse(completed);
    let failed = parse(failed);
    let (mut c, mut f) = (0, 0);
    while let (Some(one), Some(other)) = (completed.get(c), failed.get(f)) {
        if one.0 <= other.1 && other.0 <= one.1 {
            return Some(one.0.max(other.0));
        }
        if one.0 <= other.0 { c += 1 } else { f += 1 }
    }
    None
}

fn intervals(text: &str, completions: i64) -> impl Iterator<Item = Result<(i64, i64), String>> {
    let parts = text.split(',').filter(move |_| !text.is_empty());
    parts.map(move |part| interval(part, completions))
}

fn interval(text: &str, completions: i64) -> Result<(i64, i64), String> {
    let index = |text: &str| -> Result<i64, String> {
        let number: i64 = text
            .parse()
            .map_err(|_| format!("cannot convert string to integer for index: {text:?}"))?;
        if number >= completions {
            return Err(format!("too large index: {text:?}"));
        }
        Ok(number)
    };
    match text.split('-').collect::<Vec<_>>()[..] {
        [one] => index(one).map(|index| (index, index)),
        [first, last] => {
            let first = index(first)?;
            let last = index(last)?;
            if first >= last {
                return Err(format!("non-increasing order, previous: {first}, current: {last}"));
            }
            Ok((first, last))
        }
        _ => Err(format!(
            "the fragment {text:?} violates the requirement that an index interval can have at \
             most two parts separated by '-'"
        )),
    }
}
