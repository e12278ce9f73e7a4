//! Defaults that follow from other keys, as data: the program evaluates them, and so does a reader of its schema (`derived`).

use serde_json::{json, Value};

/// The value of a key that is null. A key in it is another of the same table, declared before; times are in seconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Formula {
    /// A constant, true or false.
    Flag(bool),
    /// A constant number.
    Number(f64),
    /// The value of this key.
    Key(&'static str),
    /// Selected by the name in this key.
    By(&'static str, &'static [(&'static str, Formula)]),
    /// The sum of numbers.
    Sum(&'static [Formula]),
    /// The product of numbers.
    Product(&'static [Formula]),
    /// The largest of numbers.
    Max(&'static [Formula]),
}

impl Formula {
    /// Null if a key that it needs is missing.
    pub fn value(&self, values: &Value) -> Value {
        let each = |parts: &[Formula]| parts.iter().map(|part| part.value(values).as_f64()).collect::<Option<Vec<_>>>();
        let found =
            |numbers: Option<Vec<f64>>, whole: fn(Vec<f64>) -> f64| numbers.map_or(Value::Null, |n| number(whole(n)));
        match self {
            Self::Flag(flag) => json!(flag),
            Self::Number(n) => number(*n),
            Self::Key(key) => values[key].clone(),
            Self::By(key, cases) => {
                let case = cases.iter().find(|(name, _)| values[key] == *name);
                case.map_or(Value::Null, |(_, formula)| formula.value(values))
            }
            Self::Sum(parts) => found(each(parts), |n| n.iter().sum()),
            Self::Product(parts) => found(each(parts), |n| n.iter().product()),
            Self::Max(parts) => found(each(parts), |n| n.into_iter().fold(f64::NEG_INFINITY, f64::max)),
        }
    }

    /// Its form in a schema: a key is a string, `{"by": key, "cases": {name: formula}}`, `{"sum": [formula]}`.
    pub fn json(&self) -> Value {
        let all = |parts: &[Formula]| parts.iter().map(Self::json).collect::<Value>();
        match self {
            Self::Flag(flag) => json!(flag),
            Self::Number(n) => number(*n),
            Self::Key(key) => json!(key),
            Self::By(key, cases) => {
                let cases: serde_json::Map<_, _> =
                    cases.iter().map(|(name, f)| ((*name).to_owned(), f.json())).collect();
                json!({ "by": key, "cases": cases })
            }
            Self::Sum(parts) => json!({ "sum": all(parts) }),
            Self::Product(parts) => json!({ "product": all(parts) }),
            Self::Max(parts) => json!({ "max": all(parts) }),
        }
    }
}

/// A number; a whole one is written without a fraction.
pub(crate) fn number(value: f64) -> Value {
    const EXACT: f64 = (1u64 << f64::MANTISSA_DIGITS) as f64;
    if value.fract() == 0.0 && value.abs() <= EXACT {
        json!(value as i64)
    } else {
        json!(value)
    }
}

#[cfg(test)]
mod tests {
    use super::Formula::{By, Flag, Key, Max, Number, Product, Sum};
    use super::*;

    const FLAG: Formula = By("style", &[("old", Flag(false)), ("new", Flag(true))]);
    const TIME: Formula = Max(&[Product(&[Number(2.0), Key("wait")]), Sum(&[Key("wait"), Number(3.0)])]);

    #[test]
    fn a_formula_is_evaluated_with_the_values_of_other_keys() {
        assert_eq!(FLAG.value(&json!({"style": "new"})), json!(true));
        // the larger of 2 x 1.5 and 1.5 + 3, then of 2 x 4 and 4 + 3
        assert_eq!(TIME.value(&json!({"wait": 1.5})), json!(4.5));
        assert_eq!(TIME.value(&json!({"wait": 4})), json!(8));
    }

    #[test]
    fn without_a_key_that_it_needs_there_is_no_value() {
        assert_eq!(TIME.value(&json!({})), Value::Null);
        assert_eq!(FLAG.value(&json!({"style": "none"})), Value::Null);
    }

    #[test]
    fn its_json_names_keys_by_strings() {
        assert_eq!(FLAG.json(), json!({"by": "style", "cases": {"old": false, "new": true}}));
        assert_eq!(TIME.json(), json!({"max": [{"product": [2, "wait"]}, {"sum": ["wait", 3]}]}));
    }
}
