//! Keys of a configuration, each declared once: name, unit, limits, default, choices and one line of documentation.
//!
//! [`keys!`](crate::keys!) declares a struct, [`choices!`](crate::choices!) an enum of names. The check of a program
//! ([`check`]) and the JSON Schema that it prints ([`crate::schema`]) are made from the same declaration, so that no limit
//! stands twice.

use crate::formula::Formula;
use serde::Serialize;
use serde_json::Value;
use std::fmt;
use std::net::Ipv4Addr;
use std::path::PathBuf;

/// A longer time in the options of a program is a mistake of its unit.
pub const MAX_TIME_S: f64 = 86_400.0;

/// Bits of an IPv4 address.
pub const MAX_PREFIX: u8 = 32;

/// What a number may be. `above` and `below` are not reached themselves.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Limits {
    pub unit: &'static str,
    pub min: Option<f64>,
    pub above: Option<f64>,
    pub max: Option<f64>,
    pub below: Option<f64>,
    /// Where it does not follow from the `Default` of a whole struct.
    pub default: Option<f64>,
    /// Of a key that may be null: what its value is then.
    pub derived: Option<&'static Formula>,
}

const NONE: Limits = Limits { unit: "", min: None, above: None, max: None, below: None, default: None, derived: None };

pub const fn within(min: f64, max: f64) -> Limits {
    Limits { min: Some(min), max: Some(max), ..NONE }
}

pub const fn from(min: f64) -> Limits {
    Limits { min: Some(min), ..NONE }
}

pub const fn up_to(max: f64) -> Limits {
    Limits { max: Some(max), ..NONE }
}

pub const fn above(above: f64) -> Limits {
    Limits { above: Some(above), ..NONE }
}

/// From `min` to less than `below`.
pub const fn below(min: f64, below: f64) -> Limits {
    Limits { min: Some(min), below: Some(below), ..NONE }
}

/// Of a unit, limited by its type alone.
pub const fn of(unit: &'static str) -> Limits {
    Limits { unit, ..NONE }
}

/// Limited by its type alone; null means what the formula gives.
pub const fn derived(formula: &'static Formula) -> Limits {
    Limits { derived: Some(formula), ..NONE }
}

impl Limits {
    pub const fn up_to(self, max: f64) -> Self {
        Self { max: Some(max), ..self }
    }

    pub const fn of(self, unit: &'static str) -> Self {
        Self { unit, ..self }
    }

    pub const fn by_default(self, default: f64) -> Self {
        Self { default: Some(default), ..self }
    }

    pub const fn derived(self, formula: &'static Formula) -> Self {
        Self { derived: Some(formula), ..self }
    }

    /// These, where `other` does not state its own.
    const fn replaced_by(self, other: Limits) -> Self {
        let lower = if other.min.is_some() || other.above.is_some() { other } else { self };
        let upper = if other.max.is_some() || other.below.is_some() { other } else { self };
        let unit = if other.unit.is_empty() { self.unit } else { other.unit };
        Self { unit, min: lower.min, above: lower.above, max: upper.max, below: upper.below, ..other }
    }

    /// Whether a value is within them, which no infinity is.
    pub fn allow(&self, value: f64) -> bool {
        value.is_finite()
            && self.min.is_none_or(|min| value >= min)
            && self.above.is_none_or(|above| value > above)
            && self.max.is_none_or(|max| value <= max)
            && self.below.is_none_or(|below| value < below)
    }

    /// What to give: `1 to 60`, `more than 0, at most 86400 s`.
    pub fn wanted(&self) -> String {
        let (lower, upper) = match (self.min, self.above, self.max, self.below) {
            (Some(min), _, Some(max), _) => return self.in_unit(format!("{min} to {max}")),
            (min, above, max, below) => (
                min.map(|v| format!("at least {v}")).or(above.map(|v| format!("more than {v}"))),
                max.map(|v| format!("at most {v}")).or(below.map(|v| format!("less than {v}"))),
            ),
        };
        self.in_unit([lower, upper].into_iter().flatten().collect::<Vec<_>>().join(", "))
    }

    /// What is wrong with a value outside: `is not between 1 and 60`, `is not above 0`.
    pub fn missed(&self) -> String {
        let text = match (self.min, self.above, self.max) {
            (Some(min), _, Some(max)) => format!("between {min} and {max}"),
            (_, Some(above), Some(max)) => format!("above {above}, at most {max}"),
            (_, Some(above), _) => format!("above {above}"),
            _ => self.wanted(),
        };
        self.in_unit(format!("is not {}", text.trim()))
    }

    fn in_unit(&self, text: String) -> String {
        if self.unit.is_empty() || text.ends_with(self.unit) {
            text
        } else {
            format!("{text} {}", self.unit)
        }
    }
}

/// What a key takes.
#[derive(Clone, Copy, Debug)]
pub enum Takes {
    Flag,
    Whole(Limits),
    Number(Limits),
    /// One of these names; the first is the default where a struct has none of its own.
    Choice(&'static [&'static str]),
    Text,
    Address,
    /// An address and a prefix length.
    Network,
    /// An address as `02:00:00:00:00:01`.
    Mac,
    /// The limits are those of each number in it.
    List(&'static Takes, Limits),
    Table(Table),
    /// One table of several, found by the name in its key `tag`.
    OneOf {
        tag: &'static str,
        tables: &'static [Named],
    },
    /// Whatever its reader accepts.
    Anything,
}

impl Takes {
    pub(crate) const fn limited(self, limits: Limits) -> Self {
        match self {
            Takes::Whole(old) => Takes::Whole(old.replaced_by(limits)),
            Takes::Number(old) => Takes::Number(old.replaced_by(limits)),
            Takes::List(each, _) => Takes::List(each, limits),
            other => other,
        }
    }
}

#[derive(Clone, Copy, Debug)]
pub struct Table {
    pub keys: &'static [Key],
    /// An object with the defaults, or null.
    pub defaults: fn() -> Value,
}

#[derive(Clone, Copy, Debug)]
pub struct Named {
    pub name: &'static str,
    pub about: &'static str,
    pub keys: &'static [Key],
}

/// A type that says what a key of it takes.
pub trait Typed {
    const TAKES: Takes;
    /// Whether it may be `null`.
    const NULLABLE: bool = false;
}

/// A struct of declared keys.
pub trait Declared {
    const KEYS: &'static [Key];
    fn defaults() -> Value {
        Value::Null
    }
}

impl Declared for () {
    const KEYS: &'static [Key] = &[];
}

macro_rules! typed {
    ($($type:ty => $takes:expr;)*) => { $( impl Typed for $type { const TAKES: Takes = $takes; } )* };
}

typed! {
    bool => Takes::Flag;
    u8 => Takes::Whole(within(0.0, u8::MAX as f64));
    u16 => Takes::Whole(within(0.0, u16::MAX as f64));
    u32 => Takes::Whole(within(0.0, u32::MAX as f64));
    u64 => Takes::Whole(from(0.0));
    usize => Takes::Whole(from(0.0));
    f64 => Takes::Number(NONE);
    crate::Duration => Takes::Number(within(0.0, MAX_TIME_S).of("s"));
    String => Takes::Text;
    PathBuf => Takes::Text;
    Ipv4Addr => Takes::Address;
    (Ipv4Addr, u8) => Takes::Network;
    [u8; 6] => Takes::Mac;
    [f64; 3] => Takes::List(&<f64 as Typed>::TAKES, NONE);
    Value => Takes::Anything;
}

impl<T: Typed> Typed for Option<T> {
    const TAKES: Takes = T::TAKES;
    const NULLABLE: bool = true;
}

impl<T: Typed> Typed for Vec<T> {
    const TAKES: Takes = Takes::List(&T::TAKES, NONE);
}

#[derive(Clone, Copy, Debug)]
pub struct Key {
    pub name: &'static str,
    /// One line of documentation.
    pub about: &'static str,
    pub takes: Takes,
    pub nullable: bool,
    pub required: bool,
    /// What its value is where it is null.
    pub derived: Option<&'static Formula>,
}

impl Key {
    /// A key of type `T`, which may be left out.
    pub const fn new<T: Typed>(name: &'static str, about: &'static str) -> Self {
        Self { name, about, takes: T::TAKES, nullable: T::NULLABLE, required: false, derived: None }
    }

    pub const fn required(self, required: bool) -> Self {
        Self { required, ..self }
    }

    /// With limits that replace those of its type.
    pub const fn limited(self, limits: Limits) -> Self {
        Self { takes: self.takes.limited(limits), derived: limits.derived, ..self }
    }
}

/// The first number outside its limits.
#[derive(Clone, Debug, PartialEq)]
pub struct OutOfLimits {
    /// Dotted where it is in a table.
    pub key: String,
    pub value: f64,
    pub limits: Box<Limits>,
}

/// As a program of several tables words it: `key "queue.packets": 0 is not between 1 and 100000`.
impl fmt::Display for OutOfLimits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "key \"{}\": {} {}", self.key, self.value, self.limits.missed())
    }
}
impl std::error::Error for OutOfLimits {}

/// Checks each number of `values`, which serialises to an object of these keys.
pub fn check(keys: &[Key], values: &impl Serialize) -> Result<(), OutOfLimits> {
    check_table(keys, "", &serde_json::to_value(values).unwrap_or(Value::Null))
}

/// `values`, which serialises to an object of these keys, as JSON, with what a null key derives from others.
pub fn completed(keys: &[Key], values: &impl Serialize) -> Value {
    let mut values = serde_json::to_value(values).unwrap_or(Value::Null);
    for key in keys {
        if let Some(formula) = key.derived.filter(|_| values[key.name].is_null()) {
            values[key.name] = formula.value(&values);
        }
    }
    values
}

fn check_table(keys: &[Key], prefix: &str, values: &Value) -> Result<(), OutOfLimits> {
    keys.iter().try_for_each(|key| match values.get(key.name) {
        Some(value) if !(value.is_null() && key.nullable) => {
            check_value(&key.takes, &format!("{prefix}{}", key.name), value)
        }
        _ => Ok(()),
    })
}

fn check_value(takes: &Takes, path: &str, value: &Value) -> Result<(), OutOfLimits> {
    match takes {
        Takes::Whole(limits) | Takes::Number(limits) => {
            // what is not finite is null in JSON
            let value = value.as_f64().unwrap_or(f64::NAN);
            let wrong = || OutOfLimits { key: path.to_owned(), value, limits: Box::new(*limits) };
            limits.allow(value).then_some(()).ok_or_else(wrong)
        }
        Takes::List(each, limits) => {
            let each = each.limited(*limits);
            let values = value.as_array().into_iter().flatten().enumerate();
            values.into_iter().try_for_each(|(i, value)| check_value(&each, &format!("{path}[{i}]"), value))
        }
        Takes::Table(table) => check_table(table.keys, &format!("{path}."), value),
        Takes::OneOf { tag, tables } => {
            let named = tables.iter().find(|table| value.get(tag).is_some_and(|name| name == table.name));
            named.map_or(Ok(()), |table| check_table(table.keys, &format!("{path}."), value))
        }
        _ => Ok(()),
    }
}

/// An enum whose values are names in a configuration; the first is its default.
#[macro_export]
macro_rules! choices {
    ($(#[$meta:meta])* pub enum $name:ident {
        $(#[$first_attr:meta])* $first:ident = $first_text:literal,
        $( $(#[$attr:meta])* $variant:ident = $text:literal, )*
    }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ::serde::Serialize, ::serde::Deserialize)]
        pub enum $name {
            $(#[$first_attr])*
            #[default]
            #[serde(rename = $first_text)]
            $first,
            $( $(#[$attr])* #[serde(rename = $text)] $variant, )*
        }

        impl $crate::keys::Typed for $name {
            const TAKES: $crate::keys::Takes = $crate::keys::Takes::Choice(&[$first_text, $($text),*]);
        }
    };
}

/// A struct whose fields are keys: `/// documentation`, `pub name: Type = default => limits;`.
///
/// With a default for each key it gets `Default`; without any, those with `#[serde(default)]` may be left out, and
/// `#[serde(default = "path")]` goes with `limits.by_default(value)`. `limits` may be left out.
#[macro_export]
macro_rules! keys {
    ($(#[$meta:meta])* pub struct $name:ident {
        $( $(#[$($attr:tt)*])* pub $key:ident : $type:ty = $default:expr $(=> $limits:expr)? ; )*
    }) => {
        $(#[$meta])*
        pub struct $name { $( $(#[$($attr)*])* pub $key: $type, )* }

        impl Default for $name {
            fn default() -> Self {
                Self { $( $key: $default, )* }
            }
        }

        impl $crate::keys::Declared for $name {
            const KEYS: &'static [$crate::keys::Key] = &[ $(
                $crate::keys::Key::new::<$type>(stringify!($key), concat!($( $crate::doc_line!($($attr)*) ),*))
                    $(.limited($limits))?,
            )* ];
            fn defaults() -> ::serde_json::Value {
                ::serde_json::to_value(Self::default()).unwrap_or_default()
            }
        }
        $crate::typed_table!($name);
    };
    ($(#[$meta:meta])* pub struct $name:ident {
        $( $(#[$($attr:tt)*])* pub $key:ident : $type:ty $(=> $limits:expr)? ; )*
    }) => {
        $(#[$meta])*
        pub struct $name { $( $(#[$($attr)*])* pub $key: $type, )* }

        impl $crate::keys::Declared for $name {
            const KEYS: &'static [$crate::keys::Key] = &[ $(
                $crate::keys::Key::new::<$type>(stringify!($key), concat!($( $crate::doc_line!($($attr)*) ),*))
                    .required(!(false $( || $crate::has_default!($($attr)*) )*))
                    $(.limited($limits))?,
            )* ];
        }
        $crate::typed_table!($name);
    };
}

/// The text of a line of documentation; nothing of another attribute.
#[doc(hidden)]
#[macro_export]
macro_rules! doc_line {
    (doc = $text:literal) => {
        $text
    };
    ($($other:tt)*) => {
        ""
    };
}

/// Whether an attribute is `#[serde(default)]`.
#[doc(hidden)]
#[macro_export]
macro_rules! has_default {
    (serde(default $($path:tt)*)) => {
        true
    };
    ($($other:tt)*) => {
        false
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! typed_table {
    ($name:ident) => {
        impl $crate::keys::Typed for $name {
            const TAKES: $crate::keys::Takes = $crate::keys::Takes::Table($crate::keys::Table {
                keys: <$name as $crate::keys::Declared>::KEYS,
                defaults: <$name as $crate::keys::Declared>::defaults,
            });
        }
    };
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Duration;
    use serde::Deserialize;

    choices! {
        pub enum Colour {
            Red = "red",
            Green = "dark-green",
        }
    }

    keys! {
        #[derive(Serialize, Deserialize)]
        #[serde(default, deny_unknown_fields)]
        pub struct Inner {
            /// How many,
            /// at most.
            pub count: u8 = 3 => from(1.0);
            pub colour: Colour = Colour::Green;
        }
    }

    keys! {
        #[derive(Serialize, Deserialize)]
        pub struct Outer {
            pub inner: Inner;
            #[serde(default)]
            pub wait: Option<f64> => above(0.0).of("s");
            pub share: f64 => below(0.0, 1.0);
            #[serde(default)]
            pub rows: Vec<Inner>;
        }
    }

    fn outer(change: impl FnOnce(&mut Outer)) -> Result<(), String> {
        let mut outer = Outer { inner: Inner::default(), wait: None, share: 0.5, rows: vec![Inner::default()] };
        change(&mut outer);
        check(Outer::KEYS, &outer).map_err(|e| e.to_string())
    }

    #[test]
    fn a_value_outside_its_limits_is_named_with_its_path() {
        assert_eq!(outer(|_| ()), Ok(()));
        assert_eq!(outer(|o| o.inner.count = 0).unwrap_err(), "key \"inner.count\": 0 is not between 1 and 255");
        assert_eq!(outer(|o| o.rows[0].count = 0).unwrap_err(), "key \"rows[0].count\": 0 is not between 1 and 255");
        assert_eq!(outer(|o| o.wait = Some(0.0)).unwrap_err(), "key \"wait\": 0 is not above 0 s");
        assert_eq!(outer(|o| o.share = 1.0).unwrap_err(), "key \"share\": 1 is not at least 0, less than 1");
        assert!(outer(|o| o.share = f64::NAN).unwrap_err().contains("NaN"), "a TOML file can hold it");
    }

    #[test]
    fn a_time_is_in_seconds_up_to_a_day() {
        let Takes::Number(limits) = <Duration as Typed>::TAKES else { panic!("a number") };
        assert_eq!(limits.replaced_by(above(0.0)).wanted(), "more than 0, at most 86400 s");
        assert_eq!(limits.replaced_by(from(0.01)).wanted(), "0.01 to 86400 s");
    }
}
