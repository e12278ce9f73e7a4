//! Values that a key does not take, keys that do not exist and keys that are missing, found by the declarations ([`crate::keys`]).
//!
//! A reader asks [`fit`] before serde, whose messages name types of Rust and often no key. Limits of numbers are [`crate::keys::check`]'s,
//! except for a whole number that its type cannot hold.

use crate::keys::{Key, Table, Takes};
use crate::mac_text;
use serde_json::{Map, Value};
use std::fmt;
use std::net::Ipv4Addr;

/// Longest value that a message repeats, in characters.
const MAX_SHOWN: usize = 40;
/// Misspelt names differ by at most this share of their letters from the right one.
const SIMILAR: f64 = 0.4;

/// The first mistake: one line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Misfit {
    /// Path of the key, with dots and indices: `queue.packets`, `stations[3].position[0]`; empty for the whole.
    pub key: String,
    /// The mistake and what the key takes.
    pub mistake: String,
}

/// For instance `key "queue.packets": "x" is of the wrong type; give a whole number in packets`.
impl fmt::Display for Misfit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.key.is_empty() {
            write!(f, "key \"{}\": ", self.key)?;
        }
        f.write_str(&self.mistake)
    }
}
impl std::error::Error for Misfit {}

/// Checks that `values` is an object of these keys, each with a value that it takes.
///
/// # Errors
/// The first mistake: unknown keys before values, missing keys last.
pub fn fit(keys: &[Key], values: &Value) -> Result<(), Misfit> {
    let Value::Object(object) = values else {
        return Err(mistyped("", values, &table_of(keys.iter().map(|k| k.name))));
    };
    fit_keys(keys, None, "", object)
}

fn fit_keys(keys: &[Key], tag: Option<&str>, prefix: &str, values: &Map<String, Value>) -> Result<(), Misfit> {
    let known = || keys.iter().map(|key| key.name).chain(tag);
    if let Some(unknown) = values.keys().find(|name| known().all(|known| known != *name)) {
        let remedy = match nearest(unknown, known()) {
            Some(near) => format!("did you mean {near}?"),
            None if known().next().is_none() => "remove it".to_owned(),
            None => format!("use one of {}", known().collect::<Vec<_>>().join(", ")),
        };
        return refuse(format!("{prefix}{}", shortened(unknown)), format!("unknown key; {remedy}"));
    }
    for key in keys {
        match values.get(key.name) {
            Some(Value::Null) if key.nullable => {}
            Some(value) => fit_value(&key.takes, &format!("{prefix}{}", key.name), value)?,
            None if key.required => return refuse(format!("{prefix}{}", key.name), "is missing; add it".to_owned()),
            None => {}
        }
    }
    Ok(())
}

fn fit_value(takes: &Takes, path: &str, value: &Value) -> Result<(), Misfit> {
    let fits = match (takes, value) {
        (Takes::Anything, _) | (Takes::Flag, Value::Bool(_)) | (Takes::Number(_), Value::Number(_)) => true,
        (Takes::Text, Value::String(_)) => true,
        (Takes::Whole(limits), Value::Number(number)) if number.is_u64() || number.is_i64() => {
            // beyond 2^53 an f64 rounds, and limits are far below
            if !number.as_f64().is_some_and(|number| limits.allow(number)) {
                return refuse(path.to_owned(), format!("{number} {}", limits.missed()));
            }
            true
        }
        (Takes::Choice(names), _) => {
            if !names.iter().any(|name| value == name) {
                return refuse(path.to_owned(), unknown_name(value, names.iter().copied()));
            }
            true
        }
        (Takes::Address, Value::String(text)) => text.parse::<Ipv4Addr>().is_ok(),
        (Takes::Network, Value::Array(pair)) => {
            matches!(pair.as_slice(), [Value::String(address), Value::Number(_)] if address.parse::<Ipv4Addr>().is_ok())
        }
        (Takes::Mac, Value::String(text)) => mac_text::parse(text).is_some(),
        (Takes::List(each, limits) | Takes::Tuple(each, limits, _), Value::Array(values)) => {
            let each = each.limited(*limits);
            values.iter().enumerate().try_for_each(|(i, value)| fit_value(&each, &format!("{path}[{i}]"), value))?;
            !matches!(takes, Takes::Tuple(.., length) if values.len() != *length)
        }
        (Takes::Table(Table { keys, .. }), Value::Object(values)) => {
            fit_keys(keys, None, &format!("{path}."), values)?;
            true
        }
        (Takes::OneOf { tag, tables }, Value::Object(values)) => {
            let names = || tables.iter().map(|table| table.name);
            let Some(name) = values.get(*tag) else {
                return refuse(format!("{path}.{tag}"), format!("is missing; use one of {}", quoted(names())));
            };
            match tables.iter().find(|table| name == table.name) {
                Some(table) => fit_keys(table.keys, Some(tag), &format!("{path}."), values)?,
                None => return refuse(format!("{path}.{tag}"), unknown_name(name, names())),
            }
            true
        }
        (Takes::AnyOf(several), _) => match several.iter().find(|takes| takes.is_for(value)) {
            Some(takes) => return fit_value(takes, path, value),
            None => false,
        },
        _ => false,
    };
    if fits {
        Ok(())
    } else {
        Err(mistyped(path, value, &wanted(takes)))
    }
}

/// What a key takes, after "give".
fn wanted(takes: &Takes) -> String {
    match takes {
        Takes::Flag => "true or false".to_owned(),
        Takes::Whole(limits) => in_unit("a whole number", limits.unit),
        Takes::Number(limits) => in_unit("a number", limits.unit),
        Takes::Choice(names) => quoted(names.iter().copied()),
        Takes::Text => "text in quotes".to_owned(),
        Takes::Address => "an IPv4 address like \"10.0.0.1\"".to_owned(),
        Takes::Network => "an IPv4 address and a prefix length like [\"10.0.0.0\", 8]".to_owned(),
        Takes::Mac => "a MAC address like \"02:00:00:00:00:01\"".to_owned(),
        Takes::List(each, limits) => format!("a list, each {}", wanted(&each.limited(*limits))),
        Takes::Tuple(each, limits, length) => format!("a list of {length}, each {}", wanted(&each.limited(*limits))),
        Takes::Table(table) => table_of(table.keys.iter().map(|key| key.name)),
        Takes::OneOf { tag, tables } => {
            format!("a table whose {tag} is one of {}", quoted(tables.iter().map(|table| table.name)))
        }
        Takes::AnyOf(several) => several.iter().map(wanted).collect::<Vec<_>>().join(", or "),
        Takes::Anything => "another value".to_owned(),
    }
}

fn table_of<'a>(names: impl Iterator<Item = &'a str>) -> String {
    format!("a table with {}", names.collect::<Vec<_>>().join(", "))
}

fn in_unit(what: &str, unit: &str) -> String {
    if unit.is_empty() {
        what.to_owned()
    } else {
        format!("{what} in {unit}")
    }
}

fn quoted<'a>(names: impl Iterator<Item = &'a str>) -> String {
    names.map(|name| format!("\"{name}\"")).collect::<Vec<_>>().join(", ")
}

fn unknown_name<'a>(value: &Value, names: impl Iterator<Item = &'a str> + Clone) -> String {
    let listed = quoted(names.clone());
    let near = value.as_str().and_then(|given| nearest(given, names));
    let near = near.map_or_else(String::new, |near| format!(" (did you mean \"{near}\"?)"));
    format!("{} is not known; use one of {listed}{near}", shown(value))
}

fn mistyped(path: &str, value: &Value, wanted: &str) -> Misfit {
    Misfit { key: path.to_owned(), mistake: format!("{} is of the wrong type; give {wanted}", shown(value)) }
}

fn refuse<T>(key: String, mistake: String) -> Result<T, Misfit> {
    Err(Misfit { key, mistake })
}

/// A value in one line.
fn shown(value: &Value) -> String {
    match value {
        Value::Object(_) => "a table".to_owned(),
        other => shortened(&other.to_string()),
    }
}

fn shortened(text: &str) -> String {
    if text.chars().count() <= MAX_SHOWN {
        return text.to_owned();
    }
    text.chars().take(MAX_SHOWN - 3).chain("...".chars()).collect()
}

/// The name that a misspelt one resembles.
fn nearest<'a>(given: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    if given.len() > MAX_SHOWN {
        return None;
    }
    let distances = known.map(|name| (edits(given, name), name));
    let (distance, name) = distances.min_by_key(|(distance, _)| *distance)?;
    let longest = given.len().max(name.len());
    (distance as f64 <= SIMILAR * longest as f64).then_some(name)
}

/// Letters to insert, remove or replace from one text to the other (Levenshtein).
fn edits(from: &str, to: &str) -> usize {
    let mut row: Vec<usize> = (0..=to.len()).collect();
    for (i, a) in from.bytes().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], i + 1);
        for (j, b) in to.bytes().enumerate() {
            let replaced = diagonal + usize::from(a != b);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[to.len()]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keys::tests::Outer;
    use crate::keys::{within, Declared, Typed};
    use serde_json::json;

    fn mistake(change: impl FnOnce(&mut Value)) -> String {
        let mut values = json!({"inner": {"count": 3, "colour": "red"}, "share": 0.5});
        change(&mut values);
        fit(Outer::KEYS, &values).map_or_else(|misfit| misfit.to_string(), |()| String::new())
    }

    fn alone(takes: Takes, value: Value) -> String {
        fit_value(&takes, "k", &value).map_or_else(|misfit| misfit.to_string(), |()| String::new())
    }

    #[test]
    fn values_that_keys_take_fit() {
        assert_eq!(mistake(|_| ()), "");
        assert_eq!(mistake(|v| v["wait"] = Value::Null), "");
        assert_eq!(mistake(|v| v["share"] = 7.into()), "", "its limits are another check's");
        assert_eq!(mistake(|v| v["rows"] = json!([{}, {"count": 1}])), "");
    }

    #[test]
    fn a_value_of_the_wrong_type_is_named_with_its_path_and_what_the_key_takes() {
        assert_eq!(
            mistake(|v| v["inner"]["count"] = "x".into()),
            "key \"inner.count\": \"x\" is of the wrong type; give a whole number"
        );
        assert_eq!(mistake(|v| v["inner"]["count"] = 256.into()), "key \"inner.count\": 256 is not between 1 and 255");
        assert_eq!(mistake(|v| v["wait"] = true.into()), "key \"wait\": true is of the wrong type; give a number in s");
        assert_eq!(
            mistake(|v| v["inner"] = 3.into()),
            "key \"inner\": 3 is of the wrong type; give a table with count, colour"
        );
        assert_eq!(
            mistake(|v| v["rows"] = json!([[1]])),
            "key \"rows[0]\": [1] is of the wrong type; give a table with count, colour"
        );
        assert_eq!(mistake(|v| v["share"] = Value::Null), "key \"share\": null is of the wrong type; give a number");
        let refused = fit(Outer::KEYS, &json!([])).unwrap_err().to_string();
        assert_eq!(refused, "[] is of the wrong type; give a table with inner, wait, share, rows");
    }

    #[test]
    fn an_unknown_name_or_key_is_listed_beside_those_that_exist() {
        assert_eq!(
            mistake(|v| v["inner"]["colour"] = "dark-gren".into()),
            "key \"inner.colour\": \"dark-gren\" is not known; use one of \"red\", \"dark-green\" (did you mean \"dark-green\"?)"
        );
        assert_eq!(
            mistake(|v| v["inner"]["cuont"] = 1.into()),
            "key \"inner.cuont\": unknown key; did you mean count?"
        );
        assert_eq!(mistake(|v| v["x"] = 1.into()), "key \"x\": unknown key; use one of inner, wait, share, rows");
        assert_eq!(mistake(|v| v.as_object_mut().unwrap().clear()), "key \"inner\": is missing; add it");
    }

    #[test]
    fn lists_addresses_and_choices_of_types_say_what_they_take() {
        assert_eq!(alone(<[f64; 2]>::TAKES, json!([1, 2.5])), "");
        assert_eq!(
            alone(<[f64; 2]>::TAKES, json!([1])),
            "key \"k\": [1] is of the wrong type; give a list of 2, each a number"
        );
        assert_eq!(
            alone(<[u8; 6]>::TAKES, "02:0".into()),
            "key \"k\": \"02:0\" is of the wrong type; give a MAC address like \"02:00:00:00:00:01\""
        );
        assert_eq!(alone(<[u8; 6]>::TAKES, "02:00:00:00:00:0a".into()), "");
        assert!(alone(Ipv4Addr::TAKES, "10.0.0".into()).ends_with("give an IPv4 address like \"10.0.0.1\""));
        assert_eq!(alone(<(Ipv4Addr, u8)>::TAKES, json!(["10.0.0.0", 8])), "");
        const SEVERAL: Takes = Takes::AnyOf(&[Takes::Flag, Takes::Whole(within(1.0, 64.0))]);
        assert_eq!((alone(SEVERAL, true.into()), alone(SEVERAL, 5.into())), (String::new(), String::new()));
        assert_eq!(alone(SEVERAL, 65.into()), "key \"k\": 65 is not between 1 and 64");
        assert_eq!(
            alone(SEVERAL, "x".into()),
            "key \"k\": \"x\" is of the wrong type; give true or false, or a whole number"
        );
    }
}
