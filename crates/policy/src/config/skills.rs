//! `[skills]`.

use std::path::PathBuf;

use glovebox_model::Result;
use toml::de::DeTable;

use super::document::{Document, entries, shown};
use super::section::unknown_key;
use super::value::{check_file, read_bool, read_text, refuse};
use crate::skill::SkillSettings;

const KEYS: [&str; 3] = ["dir", "shipped", "pin"];
const PINS_MAX: usize = 1000;

pub(super) fn read_skills(document: &Document<'_>, table: &DeTable<'_>) -> Result<SkillSettings> {
    let mut settings = SkillSettings::default();
    for (key, node) in entries(table) {
        match key.get_ref().as_ref() {
            "dir" => {
                let path = read_text(document, key, node, check_file)?;
                settings.dir = Some(PathBuf::from(path));
            }
            "shipped" => settings.shipped = read_bool(document, key, node)?,
            "pin" => {
                let Some(pins) = node.get_ref().as_table() else {
                    let what = "a table of digests by skill, such as `\"a.b\" = \"sha256:…\"`";
                    return Err(document.expected(key, node, what));
                };
                for (id, digest) in entries(pins) {
                    if settings.pin.len() == PINS_MAX {
                        let message = format!("there are more than {PINS_MAX} pins");
                        return Err(document.error(id.span(), message));
                    }
                    let name = id.get_ref().as_ref();
                    if !is_id(name) {
                        let message = format!("`{}` is not the id of a skill", shown(name));
                        return Err(document.error(id.span(), message).hint(
                            "an id holds dots, so it is written in quotes: `\"shell.run\" = …`",
                        ));
                    }
                    let text = digest.get_ref().as_str().unwrap_or_default();
                    if !is_digest(text) {
                        let why = "is not a digest: `sha256:` and 64 hexadecimal digits";
                        let error = refuse(document, id, text, digest.span(), why);
                        return Err(error.hint("`glovebox skill info ID` shows it"));
                    }
                    settings.pin.insert(name.to_owned(), text.to_owned());
                }
            }
            _ => return Err(unknown_key(document, "under `[skills]`", key, &KEYS)),
        }
    }
    Ok(settings)
}

fn is_id(text: &str) -> bool {
    let word = |word: &str| {
        let good = |it: u8| it.is_ascii_lowercase() || it.is_ascii_digit();
        !word.is_empty() && word.bytes().all(good)
    };
    text.len() <= 64 && text.contains('.') && text.split('.').all(word)
}

fn is_digest(text: &str) -> bool {
    let digits = text.strip_prefix("sha256:").unwrap_or_default();
    let good = |it: u8| it.is_ascii_digit() || (b'a'..=b'f').contains(&it);
    digits.len() == 64 && digits.bytes().all(good)
}

#[cfg(test)]
mod tests {
    use crate::Config;

    #[test]
    fn a_pin_is_a_digest_of_an_id() {
        let digest = format!("sha256:{}", "0a".repeat(32));
        let text = format!(
            "[skills]\ndir = \"/srv/skills\"\nshipped = false\npin = {{\"a.b\" = \"{digest}\"}}"
        );
        let config = Config::parse(&text, "f").unwrap();
        assert_eq!(config.skills().pin["a.b"], digest);
        assert!(!config.skills().shipped);
        for (wrong, why) in [
            ("dir = \"skills\"", "is not an absolute path"),
            ("shipped = \"no\"", "`true` or `false`"),
            ("pin = {\"a.b\" = \"sha256:0\"}", "is not a digest"),
            ("pin = {a.b = \"x\"}", "is not the id of a skill"),
            ("pin = {\"A.b\" = \"x\"}", "is not the id of a skill"),
            ("pin = 1", "a table of digests"),
            ("pins = 1", "pins"),
        ] {
            let error = Config::parse(&format!("[skills]\n{wrong}"), "f").unwrap_err();
            assert!(error.message.contains(why), "{wrong}: {}", error.message);
        }
    }
}
