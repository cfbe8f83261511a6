//! A set of secrets, ready to be kept out of streams and texts.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use glovebox_model::{ByteString, SecretName};
use serde_json::Value;
use zeroize::Zeroizing;

use crate::forms;
use crate::meant::{How, Place, add, ranges};
use crate::needles::Needles;
use crate::redactor::{Piece, Redactor, State};
use crate::unfit::{MARKER, Unfit, Why, weakness};
use crate::window::Window;

/// Compiled once, shared by all streams of an exec. A copy is cheap.
#[derive(Clone)]
pub struct Secrets {
    set: Arc<Set>,
}

/// Stands for a secret whose name would show a secret.
const NAMELESS: &str = "[secret]";

struct Set {
    names: Vec<SecretName>,
    /// Beside the names.
    markers: Vec<String>,
    needles: Needles,
}

impl Secrets {
    /// No secret: texts stay as they are, and nothing is copied.
    pub fn none() -> Self {
        let set = Set {
            names: Vec::new(),
            markers: Vec::new(),
            needles: Needles::none(),
        };
        Self { set: Arc::new(set) }
    }

    /// Several values under one name are those that a secret had one after the other. White space
    /// around a value is not part of it.
    ///
    /// # Errors
    /// If a value cannot be masked without masking what is no secret.
    pub fn compile<V>(values: impl IntoIterator<Item = (SecretName, V)>) -> Result<Self, Unfit>
    where
        V: Into<Zeroizing<Vec<u8>>>,
    {
        let mut names: Vec<SecretName> = Vec::new();
        let mut needles = Vec::new();
        for (name, value) in values {
            let value: Zeroizing<Vec<u8>> = value.into();
            let value = value.trim_ascii();
            if let Some(why) = weakness(value) {
                return Err(Unfit { name, why });
            }
            let label = label_of(&mut names, &name);
            needles.extend(forms::of(value).into_iter().map(|form| (form, label)));
        }
        Self::built(names, needles)
    }

    /// Whether a value could be compiled.
    ///
    /// # Errors
    /// If it could not.
    pub fn check(name: &SecretName, value: &[u8]) -> Result<(), Unfit> {
        let refused = |why| Unfit {
            name: name.clone(),
            why,
        };
        weakness(value.trim_ascii()).map_or(Ok(()), |why| Err(refused(why)))
    }

    /// The secrets of both.
    ///
    /// # Errors
    /// If they are too many.
    pub fn union(&self, other: &Self) -> Result<Self, Unfit> {
        if other.is_empty() {
            return Ok(self.clone());
        }
        if self.is_empty() {
            return Ok(other.clone());
        }
        let mut names = Vec::new();
        let mut needles = Vec::new();
        for set in [&self.set, &other.set] {
            let labels: Vec<u32> = set
                .names
                .iter()
                .map(|it| label_of(&mut names, it))
                .collect();
            for (needle, label) in set.needles.each() {
                needles.push((Zeroizing::new(needle.to_vec()), labels[label as usize]));
            }
        }
        Self::built(names, needles)
    }

    fn built(
        names: Vec<SecretName>,
        needles: Vec<(Zeroizing<Vec<u8>>, u32)>,
    ) -> Result<Self, Unfit> {
        let Some(needles) = Needles::sorted(needles) else {
            return match names.last() {
                Some(last) => Err(Unfit {
                    name: last.clone(),
                    why: Why::TooMany,
                }),
                None => Ok(Self::none()),
            };
        };
        let markers = names.iter().map(|name| marker(name, &needles)).collect();
        let set = Set {
            names,
            markers,
            needles,
        };
        Ok(Self { set: Arc::new(set) })
    }

    pub fn is_empty(&self) -> bool {
        self.set.needles.is_empty()
    }

    pub fn names(&self) -> &[SecretName] {
        &self.set.names
    }

    /// The most bytes that a stream holds back, as long as nobody puts colours or line breaks into
    /// what looks like a secret.
    pub fn longest(&self) -> usize {
        self.set.needles.longest()
    }

    /// For one stream.
    pub fn redactor(&self) -> Redactor {
        Redactor::of(self.clone())
    }

    /// For one stream whose pace must not tell what is in it.
    pub fn window(&self) -> Window {
        Window::of(self.clone())
    }

    /// Where secrets stand in a text that is taken to be whole, in their order and apart.
    pub(crate) fn places(&self, text: &[u8]) -> Vec<Place> {
        if self.is_empty() {
            return Vec::new();
        }
        let (ranges, _) = ranges(self.needles(), text, true);
        let place = |(written, label)| Place { written, label };
        let mut found: Vec<Place> = ranges.into_iter().map(place).collect();
        for how in [How::Dumped, How::Spelled] {
            found.extend(how.read(self.needles(), text, true).0);
        }
        let mut places = Vec::new();
        add(found, 0, &mut places);
        places
    }

    /// A text that is whole. Borrowed if no secret is in it.
    pub fn redact<'a>(&self, text: &'a [u8]) -> Cow<'a, [u8]> {
        if self.is_empty() {
            return Cow::Borrowed(text);
        }
        let undumped = self.redact_meant(Cow::Borrowed(text), How::Dumped);
        let plain = match undumped {
            Cow::Borrowed(text) => self.redact_written(text),
            Cow::Owned(text) => Cow::Owned(self.redact_written(&text).into_owned()),
        };
        self.redact_meant(plain, How::Spelled)
    }

    fn redact_written<'a>(&self, text: &'a [u8]) -> Cow<'a, [u8]> {
        let mut redacted: Option<Vec<u8>> = None;
        let mut plain = 0;
        self.read(text, |piece| match piece {
            Piece::Plain(range) => match &mut redacted {
                Some(redacted) => redacted.extend_from_slice(&text[range]),
                None => plain = range.end,
            },
            Piece::Secret(label) => redacted
                .get_or_insert_with(|| text[..plain].to_vec())
                .extend_from_slice(self.marker(label).as_bytes()),
        });
        redacted.map_or(Cow::Borrowed(text), Cow::Owned)
    }

    /// What is not as it is written.
    fn redact_meant<'a>(&self, text: Cow<'a, [u8]>, how: How) -> Cow<'a, [u8]> {
        let (places, _) = how.read(self.needles(), &text, true);
        if places.is_empty() {
            return text;
        }
        let mut redacted = Vec::with_capacity(text.len());
        let mut from = 0;
        for Place { written, label } in places {
            redacted.extend_from_slice(&text[from..written.start]);
            redacted.extend_from_slice(self.marker(label).as_bytes());
            from = written.end;
        }
        redacted.extend_from_slice(&text[from..]);
        Cow::Owned(redacted)
    }

    /// For messages, names and fields. A secret that is not text may leave half a character, which
    /// then is shown as such.
    pub fn redact_str<'a>(&self, text: &'a str) -> Cow<'a, str> {
        match self.redact(text.as_bytes()) {
            Cow::Borrowed(_) => Cow::Borrowed(text),
            Cow::Owned(redacted) => match String::from_utf8(redacted) {
                Ok(text) => Cow::Owned(text),
                Err(error) => Cow::Owned(String::from_utf8_lossy(error.as_bytes()).into_owned()),
            },
        }
    }

    /// Every text and every name of a field, so that the whole stays what it is: a marker in the
    /// midst of written JSON could split an escape. Whether anything was found.
    pub fn redact_json(&self, value: &mut Value) -> bool {
        if self.is_empty() {
            return false;
        }
        match value {
            Value::Null | Value::Bool(_) | Value::Number(_) => false,
            Value::String(text) => match self.redact_str(text) {
                Cow::Borrowed(_) => false,
                Cow::Owned(redacted) => {
                    *text = redacted;
                    true
                }
            },
            Value::Array(values) => values
                .iter_mut()
                .fold(false, |found, it| self.redact_json(it) | found),
            Value::Object(fields) => {
                if let Some(bytes) = hexadecimal(fields) {
                    let Cow::Owned(redacted) = self.redact(bytes.as_bytes()) else {
                        return false;
                    };
                    *value = in_json(redacted);
                    return true;
                }
                let mut found = false;
                let mut redacted = serde_json::Map::new();
                for (key, mut field) in std::mem::take(fields) {
                    found |= self.redact_json(&mut field);
                    let shown = self.redact_str(&key);
                    found |= matches!(shown, Cow::Owned(_));
                    redacted.insert(shown.into_owned(), field);
                }
                *fields = redacted;
                found
            }
        }
    }

    /// The first secret in a text that is whole.
    pub fn find(&self, text: &[u8]) -> Option<&SecretName> {
        let mut found = None;
        self.read(text, |piece| {
            if let Piece::Secret(label) = piece {
                found.get_or_insert(label);
            }
        });
        if found.is_none() && !self.is_empty() {
            let places = [How::Dumped, How::Spelled]
                .iter()
                .flat_map(|how| how.read(self.needles(), text, true).0);
            found = places.map(|it| it.label).next();
        }
        found.and_then(|label| self.name(label))
    }

    fn read(&self, text: &[u8], tell: impl FnMut(Piece)) {
        if !self.is_empty() {
            State::default().read(self.needles(), text, true, tell);
        }
    }

    pub(crate) fn needles(&self) -> &Needles {
        &self.set.needles
    }

    pub(crate) fn name(&self, label: u32) -> Option<&SecretName> {
        self.set.names.get(label as usize)
    }

    pub(crate) fn marker(&self, label: u32) -> &str {
        self.set
            .markers
            .get(label as usize)
            .map_or(NAMELESS, String::as_str)
    }
}

impl Default for Secrets {
    fn default() -> Self {
        Self::none()
    }
}

impl fmt::Debug for Secrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Secrets")
            .field("names", &self.set.names.len())
            .field("forms", &self.set.needles.len())
            .finish()
    }
}

/// No quote, backslash, slash, bracket of HTML or control character: it can stand in JSON, in a
/// terminal and in a file's name.
fn marker(name: &SecretName, needles: &Needles) -> String {
    let marker = format!("{MARKER} {name}]");
    let mut holds_secret = false;
    State::default().read(needles, marker.as_bytes(), true, |piece| {
        holds_secret |= matches!(piece, Piece::Secret(_));
    });
    match holds_secret {
        // Somebody's secret is somebody's name.
        true => NAMELESS.to_owned(),
        false => marker,
    }
}

fn label_of(names: &mut Vec<SecretName>, name: &SecretName) -> u32 {
    let at = names.iter().position(|it| it == name).unwrap_or_else(|| {
        names.push(name.clone());
        names.len() - 1
    });
    // A name takes more than one byte.
    u32::try_from(at).unwrap_or(u32::MAX)
}

/// Bytes that are no text, as `ByteString` writes them: a marker among the digits would be none.
fn hexadecimal(fields: &serde_json::Map<String, Value>) -> Option<ByteString> {
    let digits = fields.get("hex").filter(|_| fields.len() == 1)?.as_str()?;
    let (pairs, rest) = digits.as_bytes().as_chunks::<2>();
    let digit = |byte: u8| char::from(byte).to_digit(16);
    let read = |pair: &[u8; 2]| u8::try_from(digit(pair[0])? * 16 + digit(pair[1])?).ok();
    let bytes: Vec<u8> = pairs.iter().map(read).collect::<Option<_>>()?;
    ByteString::new(bytes).filter(|_| rest.is_empty())
}

/// The same the other way; what is text without the secret is written as such.
fn in_json(bytes: Vec<u8>) -> Value {
    let written = ByteString::new(bytes).map(serde_json::to_value);
    written.and_then(Result::ok).unwrap_or_default()
}
