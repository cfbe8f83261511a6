//! What must not be written down: secrets, wherever a record or a request to people has them.

use std::fmt::Debug;

use glovebox_model::{Result, SpaceId};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::failure::internal;
use crate::store::Store;

/// Takes secrets out of every text in a value; whether there were any.
pub type Hide = Box<dyn Fn(&mut Value) -> bool>;

/// Knows the secrets of every space.
pub trait Mask: Send + Sync + Debug {
    /// For a record of the space: what is taken out depends on whose it is.
    fn within(&self, space: &SpaceId, record: &Value) -> Hide;

    /// Whether there is anything to look for.
    fn knows(&self, space: &SpaceId) -> bool;
}

impl Store {
    /// From now on nothing is written that this mask knows. The first one stays.
    pub fn mask_with(&self, mask: impl Mask + 'static) {
        let _ = self.mask.set(Box::new(mask));
    }

    pub(crate) fn masked<T: Serialize + DeserializeOwned>(
        &self,
        space: &SpaceId,
        value: T,
    ) -> Result<T> {
        let Some(mask) = self.mask.get().filter(|it| it.knows(space)) else {
            return Ok(value);
        };
        let json = serde_json::to_value(&value)
            .map_err(|error| internal("a record cannot be written").caused_by(error))?;
        let hide = mask.within(space, &json);
        let mut masked = json.clone();
        if !hide(&mut masked) {
            return Ok(value);
        }
        // What does not come back as it was written was lost on the way: a name of a field, say.
        let is_stable = of_value::<T>(&json)
            .is_some_and(|it| serde_json::to_value(it).is_ok_and(|again| again == json));
        let read = |written: Value| {
            let read: T = of_value(&written)?;
            let again = serde_json::to_value(&read).ok()?;
            (!is_stable || again == written).then_some(read)
        };
        match read(masked) {
            Some(read) => Ok(read),
            None => read(hidden_where(&json, &hide, &|it| read(it).is_some()))
                // The cause would show what surrounds the secret.
                .ok_or_else(|| internal("a record cannot be written without a secret in it")),
        }
    }
}

/// From bytes, as records are read everywhere else: the binary has the code of a type once.
fn of_value<T: DeserializeOwned>(value: &Value) -> Option<T> {
    serde_json::from_slice(&serde_json::to_vec(value).ok()?).ok()
}

/// Masks each text that may be any text. What must be one of our own words, an id or a time stays as
/// it is: nobody could read the record with a marker there, and whatever ran must have one.
fn hidden_where(
    json: &Value,
    hide: &dyn Fn(&mut Value) -> bool,
    reads: &dyn Fn(Value) -> bool,
) -> Value {
    let mut places = Places {
        hide,
        chosen: Vec::new(),
        next: 0,
    };
    places.write(json);
    let count = places.next;
    places.chosen = vec![false; count];
    // Halves of what cannot be read, until single places are left.
    let mut parts: Vec<_> = std::iter::once(0..count).collect();
    while let Some(part) = parts.pop() {
        places.chosen[part.clone()].fill(true);
        if reads(places.write(json)) {
            continue;
        }
        places.chosen[part.clone()].fill(false);
        if part.len() > 1 {
            let middle = part.start + part.len() / 2;
            parts.extend([middle..part.end, part.start..middle]);
        }
    }
    places.write(json)
}

/// The places of a value where something would be masked, in their order, and those where it is.
struct Places<'p> {
    hide: &'p dyn Fn(&mut Value) -> bool,
    chosen: Vec<bool>,
    next: usize,
}

impl Places<'_> {
    fn write(&mut self, json: &Value) -> Value {
        self.next = 0;
        self.written(json)
    }

    fn written(&mut self, json: &Value) -> Value {
        match json {
            Value::Array(values) => values.iter().map(|it| self.written(it)).collect(),
            // Bytes that are no text are one place, as they are for whoever masks.
            Value::Object(fields) if fields.len() > 1 || !fields.contains_key("hex") => fields
                .iter()
                .map(|(name, field)| {
                    let name = match self.place(&Value::String(name.clone())) {
                        Value::String(name) => name,
                        _ => name.clone(),
                    };
                    (name, self.written(field))
                })
                .collect(),
            place => self.place(place),
        }
    }

    fn place(&mut self, json: &Value) -> Value {
        let mut masked = json.clone();
        if !(self.hide)(&mut masked) {
            return masked;
        }
        self.next += 1;
        match self.chosen.get(self.next - 1) {
            Some(true) => masked,
            Some(false) | None => json.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;
    use serde_json::json;

    use super::*;

    #[derive(Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    enum Word {
        Succeeded,
    }

    #[derive(Serialize, Deserialize)]
    struct Record {
        status: Word,
        #[serde(default)]
        duration: u8,
        notes: Vec<String>,
        data: Value,
    }

    fn hide(value: &mut Value) -> bool {
        match value {
            Value::String(text) => {
                let masked = ["succeeded", "duration"]
                    .iter()
                    .fold(text.clone(), |text, it| text.replace(it, "[secret x]"));
                let found = masked != *text;
                *text = masked;
                found
            }
            _ => false,
        }
    }

    #[test]
    fn what_must_be_a_word_of_ours_stays_and_all_other_text_is_masked() {
        let record = json!({
            "status": "succeeded",
            "duration": 3,
            "notes": ["a", "it succeeded", "b", "duration"],
            "data": {"succeeded": {"hex": "61"}, "x": "succeeded"},
        });
        let reads = |it: Value| {
            let read = serde_json::from_value::<Record>(it.clone());
            read.is_ok_and(|read| serde_json::to_value(read).unwrap() == it)
        };
        assert_eq!(
            hidden_where(&record, &hide, &reads),
            json!({
                "status": "succeeded",
                "duration": 3,
                "notes": ["a", "it [secret x]", "b", "[secret x]"],
                "data": {"[secret x]": {"hex": "61"}, "x": "[secret x]"},
            })
        );
    }
}
