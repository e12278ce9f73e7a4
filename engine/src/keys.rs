//! Keys of a configuration, each declared once: name, unit, limits, default, choices and one line of documentation.
//!
//! [`keys!`](crate::keys!) declares a struct, [`choices!`](crate::choices!) an enum of names, [`tables!`](crate::tables!) an enum of
//! tables. The check of a program ([`check`]) and the JSON Schema that it prints ([`crate::schema`]) are made from the same
//! declaration, so that no limit stands twice.

use crate::formula::Formula;
use serde::Serialize;
use serde_json::Value;
use std::fmt;
use std::net::Ipv4Addr;
use std::path::PathBuf;

/// Upper limit of a time in the options of a program, s: one day. A larger value is a mistake of the unit.
pub const MAX_TIME_S: f64 = 86_400.0;

/// Bits of an IPv4 address.
pub const MAX_PREFIX: u8 = 32;

/// Range of a number. `min` and `max` are inside it, `above` and `below` are not.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Limits {
    /// Unit of the number (`s`, `bit/s`, `packets`), empty for a plain number.
    pub unit: &'static str,
    /// Smallest value.
    pub min: Option<f64>,
    /// Bound below all values.
    pub above: Option<f64>,
    /// Largest value.
    pub max: Option<f64>,
    /// Bound above all values.
    pub below: Option<f64>,
    /// Default value, for a key of a struct without `Default`.
    pub default: Option<f64>,
    /// Formula of the value of a key that is null.
    pub derived: Option<&'static Formula>,
}

const NONE: Limits = Limits { unit: "", min: None, above: None, max: None, below: None, default: None, derived: None };

/// `min` to `max`, both included.
pub const fn within(min: f64, max: f64) -> Limits {
    Limits { min: Some(min), max: Some(max), ..NONE }
}

/// `min` or more.
pub const fn from(min: f64) -> Limits {
    Limits { min: Some(min), ..NONE }
}

/// `max` or less.
pub const fn up_to(max: f64) -> Limits {
    Limits { max: Some(max), ..NONE }
}

/// More than `above`.
pub const fn above(above: f64) -> Limits {
    Limits { above: Some(above), ..NONE }
}

/// From `min` to less than `below`.
pub const fn below(min: f64, below: f64) -> Limits {
    Limits { min: Some(min), below: Some(below), ..NONE }
}

/// A number in `unit` whose range is that of its type.
pub const fn of(unit: &'static str) -> Limits {
    Limits { unit, ..NONE }
}

/// No limits but those of the type; a null key has the value of `formula`.
pub const fn derived(formula: &'static Formula) -> Limits {
    Limits { derived: Some(formula), ..NONE }
}

impl Limits {
    /// The same limits with `max` as largest value.
    pub const fn up_to(self, max: f64) -> Self {
        Self { max: Some(max), ..self }
    }

    /// The same limits with a unit.
    pub const fn of(self, unit: &'static str) -> Self {
        Self { unit, ..self }
    }

    /// The same limits with a default value.
    pub const fn by_default(self, default: f64) -> Self {
        Self { default: Some(default), ..self }
    }

    /// The same limits for a key that has the value of `formula` when it is null.
    pub const fn derived(self, formula: &'static Formula) -> Self {
        Self { derived: Some(formula), ..self }
    }

    /// The same limits, replaced by those that `other` states.
    const fn replaced_by(self, other: Limits) -> Self {
        let lower = if other.min.is_some() || other.above.is_some() { other } else { self };
        let upper = if other.max.is_some() || other.below.is_some() { other } else { self };
        let unit = if other.unit.is_empty() { self.unit } else { other.unit };
        Self { unit, min: lower.min, above: lower.above, max: upper.max, below: upper.below, ..other }
    }

    /// Whether `value` is finite and inside the limits.
    pub fn allow(&self, value: f64) -> bool {
        value.is_finite()
            && self.min.is_none_or(|min| value >= min)
            && self.above.is_none_or(|above| value > above)
            && self.max.is_none_or(|max| value <= max)
            && self.below.is_none_or(|below| value < below)
    }

    /// The permitted values as text: `1 to 60`, `more than 0, at most 86400 s`.
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

    /// The error text for a value outside the limits: `is not between 1 and 60`, `is not above 0`.
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

/// Type of the values of a key.
#[derive(Clone, Copy, Debug)]
pub enum Takes {
    /// `true` or `false`.
    Flag,
    /// An integer.
    Whole(Limits),
    /// A real number.
    Number(Limits),
    /// One of these names; the first is the default of a key of a struct without `Default`.
    Choice(&'static [&'static str]),
    /// Any string.
    Text,
    /// An IPv4 address as `10.0.0.1`.
    Address,
    /// An IPv4 address and a prefix length (0 to [`MAX_PREFIX`]).
    Network,
    /// A MAC address as `02:00:00:00:00:01`.
    Mac,
    /// A list; the limits apply to each number in it.
    List(&'static Takes, Limits),
    /// A list of so many entries; the limits apply to each number in it.
    Tuple(&'static Takes, Limits, usize),
    /// A table with keys of its own.
    Table(Table),
    /// One table of several, found by the name in its key `tag`.
    OneOf {
        /// The key that holds the name of the table.
        tag: &'static str,
        /// The tables to choose from.
        tables: &'static [Named],
    },
    /// A value of one of these types.
    AnyOf(&'static [Takes]),
    /// Any value; its reader checks it.
    Anything,
}

impl Takes {
    pub(crate) const fn limited(self, limits: Limits) -> Self {
        match self {
            Takes::Whole(old) => Takes::Whole(old.replaced_by(limits)),
            Takes::Number(old) => Takes::Number(old.replaced_by(limits)),
            Takes::List(each, _) => Takes::List(each, limits),
            Takes::Tuple(each, _, length) => Takes::Tuple(each, limits, length),
            other => other,
        }
    }

    /// Whether a value is of the kind, if not among the values, that a key takes.
    pub(crate) fn is_for(&self, value: &Value) -> bool {
        match self {
            Takes::Flag => value.is_boolean(),
            Takes::Whole(_) => value.is_u64() || value.is_i64(),
            Takes::Number(_) => value.is_number(),
            Takes::List(..) | Takes::Tuple(..) | Takes::Network => value.is_array(),
            Takes::Choice(_) | Takes::Text | Takes::Address | Takes::Mac => value.is_string(),
            Takes::Table(_) | Takes::OneOf { .. } => value.is_object(),
            Takes::AnyOf(several) => several.iter().any(|takes| takes.is_for(value)),
            Takes::Anything => true,
        }
    }
}

/// A table of a configuration.
#[derive(Clone, Copy, Debug)]
pub struct Table {
    /// Its keys, in the order of their declaration.
    pub keys: &'static [Key],
    /// Returns an object with the defaults of all keys, or null if the struct has no `Default`.
    pub defaults: fn() -> Value,
}

/// A table that a name selects ([`Takes::OneOf`]).
#[derive(Clone, Copy, Debug)]
pub struct Named {
    /// Value of the tag that selects it.
    pub name: &'static str,
    /// One line of documentation.
    pub about: &'static str,
    /// Its keys without the tag.
    pub keys: &'static [Key],
}

/// A type that a key of a configuration can have.
pub trait Typed {
    /// The values that a key of this type takes.
    const TAKES: Takes;
    /// Whether `null` is a value, too.
    const NULLABLE: bool = false;
}

/// A struct whose fields are declared keys ([`keys!`](crate::keys!)).
pub trait Declared {
    /// The keys in the order of the fields.
    const KEYS: &'static [Key];
    /// An object with the default of each key; null if the struct has no `Default`.
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
    [f64; 2] => Takes::Tuple(&<f64 as Typed>::TAKES, NONE, 2);
    [f64; 3] => Takes::Tuple(&<f64 as Typed>::TAKES, NONE, 3);
    Value => Takes::Anything;
}

impl<T: Typed> Typed for Option<T> {
    const TAKES: Takes = T::TAKES;
    const NULLABLE: bool = true;
}

impl<T: Typed> Typed for Vec<T> {
    const TAKES: Takes = Takes::List(&T::TAKES, NONE);
}

/// One key of a configuration.
#[derive(Clone, Copy, Debug)]
pub struct Key {
    /// Name in the file.
    pub name: &'static str,
    /// One line of documentation.
    pub about: &'static str,
    /// Type and limits of its values.
    pub takes: Takes,
    /// Whether `null` is a value, too.
    pub nullable: bool,
    /// Whether the file must have the key.
    pub required: bool,
    /// Formula of its value when it is null.
    pub derived: Option<&'static Formula>,
}

impl Key {
    /// An optional key of type `T`.
    pub const fn new<T: Typed>(name: &'static str, about: &'static str) -> Self {
        Self { name, about, takes: T::TAKES, nullable: T::NULLABLE, required: false, derived: None }
    }

    /// The same key, required or optional.
    pub const fn required(self, required: bool) -> Self {
        Self { required, ..self }
    }

    /// The same key with limits that replace those of its type.
    pub const fn limited(self, limits: Limits) -> Self {
        Self { takes: self.takes.limited(limits), derived: limits.derived, ..self }
    }
}

/// The first number outside its limits.
#[derive(Clone, Debug, PartialEq)]
pub struct OutOfLimits {
    /// Path of the key, with dots and indices: `queue.packets`, `stations[3].position[0]`.
    pub key: String,
    /// The value found; NaN for a number that JSON cannot hold.
    pub value: f64,
    /// The limits that it violates.
    pub limits: Box<Limits>,
}

/// For instance `key "queue.packets": 0 is not between 1 and 100000 packets`.
impl fmt::Display for OutOfLimits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "key \"{}\": {} {}", self.key, self.value, self.limits.missed())
    }
}
impl std::error::Error for OutOfLimits {}

/// Checks each number of `values`, which serialises to an object of these keys.
///
/// # Errors
/// The first number outside its limits, in the order of `keys`.
pub fn check(keys: &[Key], values: &impl Serialize) -> Result<(), OutOfLimits> {
    check_table(keys, "", &serde_json::to_value(values).unwrap_or(Value::Null))
}

/// `values`, which serialises to an object of these keys, as JSON, with the derived values of null keys.
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
            // JSON has null for a number that is not finite
            let value = value.as_f64().unwrap_or(f64::NAN);
            let wrong = || OutOfLimits { key: path.to_owned(), value, limits: Box::new(*limits) };
            limits.allow(value).then_some(()).ok_or_else(wrong)
        }
        Takes::List(each, limits) | Takes::Tuple(each, limits, _) => {
            let each = each.limited(*limits);
            let values = value.as_array().into_iter().flatten().enumerate();
            values.into_iter().try_for_each(|(i, value)| check_value(&each, &format!("{path}[{i}]"), value))
        }
        Takes::Table(table) => check_table(table.keys, &format!("{path}."), value),
        Takes::OneOf { tag, tables } => {
            let named = tables.iter().find(|table| value.get(tag).is_some_and(|name| name == table.name));
            named.map_or(Ok(()), |table| check_table(table.keys, &format!("{path}."), value))
        }
        Takes::AnyOf(several) => {
            several.iter().find(|takes| takes.is_for(value)).map_or(Ok(()), |takes| check_value(takes, path, value))
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
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, ::serde::Serialize, ::serde::Deserialize)]
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
/// If each key has a default, the struct gets `Default`. If no key has one, keys with `#[serde(default)]` are optional, and
/// `#[serde(default = "path")]` needs `limits.by_default(value)` with the same value. `limits` is optional.
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
            const KEYS: &'static [$crate::keys::Key] =
                $crate::declared_keys!($( $(#[$($attr)*])* $key : $type $(=> $limits)? ; )*);
        }
        $crate::typed_table!($name);
    };
}

/// An enum of tables, of which the key `by` selects one: `/// documentation`, `Variant = "name" { key: Type => limits; }`. Keys
/// are as of [`keys!`](crate::keys!) without defaults.
#[macro_export]
macro_rules! tables {
    ($(#[$meta:meta])* pub enum $name:ident by $tag:literal {
        $( $(#[$($about:tt)*])* $variant:ident = $text:literal {
            $( $(#[$($attr:tt)*])* $key:ident : $type:ty $(=> $limits:expr)? ; )*
        } )*
    }) => {
        $(#[$meta])*
        #[derive(Clone, Debug, PartialEq, ::serde::Serialize, ::serde::Deserialize)]
        #[serde(tag = $tag, deny_unknown_fields)]
        pub enum $name { $(
            $(#[$($about)*])*
            #[serde(rename = $text)]
            $variant { $( $(#[$($attr)*])* $key: $type, )* },
        )* }

        impl $name {
            /// The tables in the order of their declaration.
            pub const TABLES: &'static [$crate::keys::Named] = &[ $( $crate::keys::Named {
                name: $text,
                about: concat!($( $crate::doc_line!($($about)*) ),*),
                keys: $crate::declared_keys!($( $(#[$($attr)*])* $key : $type $(=> $limits)? ; )*),
            }, )* ];
        }

        impl $crate::keys::Typed for $name {
            const TAKES: $crate::keys::Takes = $crate::keys::Takes::OneOf { tag: $tag, tables: Self::TABLES };
        }
    };
}

/// The keys of a table without defaults of its own.
#[doc(hidden)]
#[macro_export]
macro_rules! declared_keys {
    ($( $(#[$($attr:tt)*])* $key:ident : $type:ty $(=> $limits:expr)? ; )*) => {
        &[ $(
            $crate::keys::Key::new::<$type>(stringify!($key), concat!($( $crate::doc_line!($($attr)*) ),*))
                .required(!(false $( || $crate::has_default!($($attr)*) )*))
                $(.limited($limits))?,
        )* ]
    };
}

/// The text of a line of documentation; empty for another attribute.
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
pub(crate) mod tests {
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
