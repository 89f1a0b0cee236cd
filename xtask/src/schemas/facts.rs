//! What k8s-openapi does not tell, read from `facts.txt`, `enums.txt`, `names.txt` and `zeros.txt`.

use std::collections::BTreeMap;

use super::source::{ListType, Type, Unset};

/// Changes the types by the facts; an unknown type or field is an error, so that the table cannot
/// rot silently.
pub(super) fn lay_over(types: &mut BTreeMap<String, Type>) -> Result<(), String> {
    let facts = [
        include_str!("facts.txt"),
        include_str!("enums.txt"),
        include_str!("names.txt"),
        include_str!("zeros.txt"),
    ];
    for line in facts.into_iter().flat_map(str::lines) {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words[..] {
            [] => {}
            [comment, ..] if comment.starts_with('#') => {}
            ["atomic", name] => find(types, name)?.atomic = true,
            ["field", ty, name, ref flags @ ..] => {
                let field = find(types, ty)?.fields.iter_mut().find(|field| field.name == name);
                let field = field.ok_or_else(|| format!("facts.txt: no field {ty}.{name}"))?;
                for flag in flags {
                    match *flag {
                        "optional" => field.required = false,
                        flag => set(&mut field.flags, flag)?,
                    }
                }
            }
            ["zeros", ty, ref fields @ ..] => zeros(find(types, ty)?, ty, fields)?,
            _ => return Err(format!("facts.txt: what is {line:?}?")),
        }
    }
    Ok(())
}

/// `+spec ?rules -replicas`
fn zeros(object: &mut Type, ty: &str, words: &[&str]) -> Result<(), String> {
    for word in words {
        let (sign, name) = word.split_at(1);
        let field = object.fields.iter_mut().find(|field| field.name == name);
        let field = field.ok_or_else(|| format!("zeros.txt: no field {ty}.{name}"))?;
        field.flags.unset = match sign {
            "+" => Unset::Zero,
            "?" => Unset::Null,
            "-" => Unset::OmitEmpty,
            _ => return Err(format!("zeros.txt: what is {word:?}?")),
        };
    }
    Ok(())
}

fn find<'a>(types: &'a mut BTreeMap<String, Type>, name: &str) -> Result<&'a mut Type, String> {
    types.get_mut(name).ok_or_else(|| format!("facts.txt: no type {name}"))
}

fn set(flags: &mut super::source::Flags, flag: &str) -> Result<(), String> {
    match flag.split_once('=') {
        None if flag == "granular" => flags.granular = true,
        None if flag == "atomic" => flags.list = ListType::Atomic,
        None if flag == "value" => flags.value = true,
        Some(("map", keys)) => {
            flags.list = ListType::Map(keys.split(',').map(str::to_owned).collect());
        }
        Some(("patch", rule)) => flags.patch = Some(rule.to_owned()),
        Some(("default", value)) => flags.default = Some(value.to_owned()),
        Some(("go", name)) => flags.go = Some(name.to_owned()),
        Some(("in", structs)) => flags.embedded = Some(structs.to_owned()),
        Some(("enum", values)) => flags.enumeration = Some(values.to_owned()),
        _ => return Err(format!("facts.txt: unknown flag {flag}")),
    }
    Ok(())
}
