//! JSON Schema (draft 2020-12) of declared keys ([`mod@crate::keys`]), printed by `PROGRAM schema` and stored in `formats/schema`.
//!
//! Annotations of this project: `unit`, the unit of a number; `derived`, the value of a key that is null ([`crate::formula`]).
//! Keys stand in the order of their declaration.

use crate::formula::number;
use crate::keys::{Declared, Key, Limits, Named, Table, Takes, MAX_PREFIX};
use serde::ser::{Serialize, SerializeMap, Serializer};
use serde_json::{json, Value};

/// The JSON Schema of the keys of `T` as indented text. `id`: `$id`; `about`: `title`; `facts`: further annotations.
pub fn schema<T: Declared>(id: &str, about: &str, facts: Vec<(&'static str, Value)>) -> String {
    let table = Table { keys: T::KEYS, defaults: T::defaults };
    let head = [
        ("$schema", json!("https://json-schema.org/draft/2020-12/schema")),
        ("$id", json!(id)),
        ("title", json!(about)),
    ];
    let mut object = InOrder(head.into_iter().chain(facts).map(|(name, value)| (name, Node::Value(value))).collect());
    object.0.extend(of_table(&table).0);
    // maps of strings and numbers alone cannot fail
    serde_json::to_string_pretty(&object).unwrap_or_default()
}

/// An object whose members stay in order, as its keys are declared.
struct InOrder(Vec<(&'static str, Node)>);

enum Node {
    Value(Value),
    Object(InOrder),
    List(Vec<InOrder>),
}

impl Serialize for InOrder {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        let mut map = s.serialize_map(Some(self.0.len()))?;
        self.0.iter().try_for_each(|(name, node)| map.serialize_entry(name, node))?;
        map.end()
    }
}

impl Serialize for Node {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        match self {
            Node::Value(value) => value.serialize(s),
            Node::Object(object) => object.serialize(s),
            Node::List(list) => list.serialize(s),
        }
    }
}

fn of_table(table: &Table) -> InOrder {
    of_keys(table.keys, &(table.defaults)(), None)
}

/// `tag`: the key that has the table's name, and that name.
fn of_keys(keys: &[Key], defaults: &Value, tag: Option<(&'static str, &'static str)>) -> InOrder {
    let mut properties: Vec<_> = tag.iter().map(|(key, name)| (*key, Node::Value(json!({ "const": name })))).collect();
    properties.extend(keys.iter().map(|key| (key.name, Node::Object(of_key(key, defaults)))));
    let required = tag.iter().map(|(key, _)| *key).chain(keys.iter().filter(|key| key.required).map(|key| key.name));
    InOrder(vec![
        ("type", Node::Value(json!("object"))),
        ("additionalProperties", Node::Value(json!(false))),
        ("required", Node::Value(required.collect())),
        ("properties", Node::Object(InOrder(properties))),
    ])
}

fn of_key(key: &Key, defaults: &Value) -> InOrder {
    let mut object = InOrder(vec![("description", Node::Value(key.about.trim().into()))]);
    object.0.extend(of_takes(&key.takes, key.nullable).0);
    if !key.required {
        let default = defaults.get(key.name).cloned().or_else(|| default_of(key));
        object.0.extend(default.map(|default| ("default", Node::Value(default))));
    }
    object.0.extend(key.derived.map(|formula| ("derived", Node::Value(formula.json()))));
    object
}

/// Default of a key of a struct without `Default`: the value that `#[serde(default)]` gives.
fn default_of(key: &Key) -> Option<Value> {
    match key.takes {
        _ if key.nullable => Some(Value::Null),
        Takes::Flag => Some(false.into()),
        Takes::Whole(limits) | Takes::Number(limits) => Some(number(limits.default.unwrap_or(0.0))),
        Takes::Choice(names) => names.first().map(|name| (*name).into()),
        Takes::List(..) => Some(json!([])),
        _ => None,
    }
}

fn of_takes(takes: &Takes, nullable: bool) -> InOrder {
    let typed = |name: &str| {
        let kind = if nullable { json!([name, "null"]) } else { json!(name) };
        InOrder(vec![("type", Node::Value(kind))])
    };
    let with = |name: &str, more: Vec<(&'static str, Node)>| {
        let mut object = typed(name);
        object.0.extend(more);
        object
    };
    match takes {
        Takes::Flag => typed("boolean"),
        Takes::Whole(limits) => with("integer", of_limits(limits)),
        Takes::Number(limits) => with("number", of_limits(limits)),
        Takes::Choice(names) => with("string", vec![("enum", Node::Value(json!(names)))]),
        Takes::Text => typed("string"),
        Takes::Address => with("string", vec![("format", Node::Value(json!("ipv4")))]),
        Takes::Mac => with("string", vec![("pattern", Node::Value(json!("^([0-9a-fA-F]{2}:){5}[0-9a-fA-F]{2}$")))]),
        Takes::Network => {
            let pair =
                json!([{"type": "string", "format": "ipv4"}, {"type": "integer", "minimum": 0, "maximum": MAX_PREFIX}]);
            with("array", vec![("prefixItems", Node::Value(pair))])
        }
        Takes::List(each, limits) | Takes::Tuple(each, limits, _) => {
            with("array", vec![("items", Node::Object(of_takes(&each.limited(*limits), false)))])
        }
        Takes::Table(table) if nullable => {
            let mut object = of_table(table);
            object.0[0].1 = Node::Value(json!(["object", "null"]));
            object
        }
        Takes::Table(table) => of_table(table),
        Takes::OneOf { tag, tables } => {
            let null = nullable.then(|| InOrder(vec![("type", Node::Value(json!("null")))]));
            InOrder(vec![("oneOf", Node::List(tables.iter().map(|named| of_named(tag, named)).chain(null).collect()))])
        }
        Takes::AnyOf(several) => {
            InOrder(vec![("anyOf", Node::List(several.iter().map(|takes| of_takes(takes, nullable)).collect()))])
        }
        Takes::Anything => InOrder(Vec::new()),
    }
}

fn of_named(tag: &'static str, named: &Named) -> InOrder {
    let mut object = InOrder(vec![("description", Node::Value(named.about.trim().into()))]);
    object.0.extend(of_keys(named.keys, &Value::Null, Some((tag, named.name))).0);
    object
}

fn of_limits(limits: &Limits) -> Vec<(&'static str, Node)> {
    let bounds = [
        ("minimum", limits.min),
        ("exclusiveMinimum", limits.above),
        ("maximum", limits.max),
        ("exclusiveMaximum", limits.below),
    ];
    let unit = (!limits.unit.is_empty()).then(|| ("unit", Node::Value(limits.unit.into())));
    let bounds = bounds.into_iter().filter_map(|(name, bound)| bound.map(|b| (name, Node::Value(number(b)))));
    unit.into_iter().chain(bounds).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keys::tests::Outer;

    #[test]
    fn the_schema_has_limits_units_and_defaults_in_the_order_of_the_keys() {
        let text = schema::<Outer>("x", "an example", vec![("port", 9.into())]);
        let read: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(read["port"], 9);
        assert_eq!(read["required"], json!(["inner", "share"]));
        let (outer, inner) = (&read["properties"], &read["properties"]["inner"]["properties"]);
        assert_eq!(inner["count"]["description"], "How many, at most.");
        assert_eq!((&inner["count"]["minimum"], &inner["count"]["maximum"]), (&json!(1), &json!(255)));
        assert_eq!((&inner["count"]["default"], &inner["colour"]["default"]), (&json!(3), &json!("dark-green")));
        assert_eq!(inner["colour"]["enum"], json!(["red", "dark-green"]));
        assert_eq!((&outer["wait"]["type"], &outer["wait"]["unit"]), (&json!(["number", "null"]), &json!("s")));
        assert_eq!((&outer["wait"]["exclusiveMinimum"], &outer["share"]["exclusiveMaximum"]), (&json!(0), &json!(1)));
        assert_eq!(outer["rows"]["items"]["properties"], outer["inner"]["properties"]);
        assert!(text.find("\"wait\": {") < text.find("\"share\": {"), "as declared, not by the alphabet");
    }
}
