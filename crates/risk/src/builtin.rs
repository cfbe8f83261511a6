//! Parts of the shell that change what later names mean, or evaluate their arguments again.

use crate::command::Unclear;
use crate::environment::{assigned, changes_meaning};
use crate::outline::Outline;
use crate::resolve::Simple;
use crate::shell::Text;

pub(crate) fn builtin(simple: &Simple, name: &str, arguments: &[Text], outline: &mut Outline) {
    let option = |letters: &[char]| {
        let mut options = arguments
            .iter()
            .map(Text::shown)
            .filter(|it| it.starts_with('-'));
        options.any(|it| it.contains(letters))
    };
    let subscript = arguments.iter().any(|it| it.shown().contains('['));
    let opaque = arguments.iter().any(|it| it.known().is_none());
    match name {
        "alias" | "enable" | "hash" | "shopt" | "unalias" | "set" if !arguments.is_empty() => {
            let harmless = name == "set"
                && arguments.iter().all(|it| {
                    let word = it.shown();
                    matches!(word, "pipefail" | "errexit" | "nounset" | "xtrace")
                        || word
                            .trim_start_matches(['-', '+'])
                            .chars()
                            .all(|it| "euxovf".contains(it))
                });
            if !harmless {
                simple.blind(Unclear::Definition, outline);
            }
        }
        "export" | "declare" | "typeset" | "readonly" | "local" => {
            let changes = |it: &Text| assigned(it.shown()).is_some_and(changes_meaning);
            if arguments.iter().any(changes) {
                simple.blind(Unclear::Environment, outline);
            }
            let bare = |it: &Text| it.known().is_none() && assigned(it.shown()).is_none();
            if option(&['i', 'n']) || subscript || arguments.iter().any(bare) {
                simple.blind(Unclear::Evaluation, outline);
            }
        }
        "let" | "mapfile" | "readarray" | "bind" | "complete" | "compgen" | "fc" => {
            simple.blind(Unclear::Evaluation, outline);
        }
        "read" | "unset" | "getopts" => {
            if arguments.iter().any(|it| sets(it.shown())) {
                simple.blind(Unclear::Environment, outline);
            }
            if subscript || opaque {
                simple.blind(Unclear::Evaluation, outline);
            }
        }
        "printf" | "wait" => {
            let stores = if name == "printf" { "-v" } else { "-p" };
            let Some(at) = arguments
                .iter()
                .position(|it| it.shown().starts_with(stores))
            else {
                return;
            };
            let given = arguments.get(at).filter(|it| it.shown() != stores);
            let Some(target) = given.or_else(|| arguments.get(at + 1)) else {
                return;
            };
            if target.known().is_none_or(|it| it.contains('[')) {
                simple.blind(Unclear::Evaluation, outline);
            } else if sets(target.shown()) {
                simple.blind(Unclear::Environment, outline);
            }
        }
        "test" | "[" if arguments.iter().any(|it| matches!(it.shown(), "-v" | "-R")) => {
            simple.blind(Unclear::Evaluation, outline);
        }
        _ => {}
    }
}

/// Whether a word names such a variable, by itself or behind the letters of options: `-aPATH`.
fn sets(word: &str) -> bool {
    let attached = |at: usize| word.get(at..).is_some_and(changes_meaning);
    changes_meaning(word) || (word.starts_with('-') && (2..word.len()).any(attached))
}
