//! One question, asked until it is answered.

use glovebox_model::{Answer, Approval, Permit, Program, Reason, ReasonKind};

use super::{Prompt, Typed, editor, shown};
use crate::render::one_line;
use crate::rewrite;

/// What a person may answer beside yes and no.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Offer {
    /// What its kind is called. Empty where only the server knows.
    kind: Option<String>,
    edit: bool,
    /// To leave it to somebody else.
    later: bool,
}

impl Offer {
    /// At the prompt of the run that asks.
    pub(crate) fn here(approval: &Approval, kind: Option<&str>) -> Self {
        Self {
            kind: kind.filter(|_| may_have_kind(approval)).map(str::to_owned),
            edit: approval.quorum <= 1,
            later: false,
        }
    }

    /// For what waits at a server, which says itself if it has no kind.
    pub(crate) fn there(approval: &Approval) -> Self {
        Self {
            kind: may_have_kind(approval).then(String::new),
            edit: approval.quorum <= 1,
            later: true,
        }
    }

    /// For what another process runs once it is answered.
    pub(crate) fn or_later() -> Self {
        Self {
            kind: None,
            edit: false,
            later: true,
        }
    }

    fn question(&self) -> String {
        let mut words = vec!["[o]nce".to_owned()];
        words.extend(self.kind.as_ref().map(|kind| match kind.as_str() {
            "" => "[k]ind in this conversation".to_owned(),
            kind => format!("[k]ind in this conversation ({})", one_line(kind)),
        }));
        if self.edit {
            words.push("[e]dit".to_owned());
        }
        if self.later {
            words.push("[l]ater".to_owned());
        }
        words.push("[d]eny".to_owned());
        format!("allow it? {}: ", words.join(", "))
    }

    fn read(&self, line: &str) -> Option<Choice> {
        let mut words = line.splitn(2, char::is_whitespace);
        let word = words.next().unwrap_or_default().to_lowercase();
        let reason = words.next().map(str::trim).filter(|it| !it.is_empty());
        let reason = reason.map(|it| it.chars().take(Answer::REASON_MOST).collect::<String>());
        match word.as_str() {
            "o" | "once" => Some(Choice::Once(reason)),
            "k" | "kind" if self.kind.is_some() => Some(Choice::Kind(reason)),
            "e" | "edit" if self.edit => Some(Choice::Edit(reason)),
            "l" | "later" if self.later => Some(Choice::Later),
            "d" | "deny" => Some(Choice::Deny(reason)),
            _ => None,
        }
    }
}

/// A grant answers for the approval mode alone: a rule that asks goes on asking, and what goes
/// beyond policy is never covered.
fn may_have_kind(approval: &Approval) -> bool {
    let asks_on = |it: &Reason| {
        it.permit == Permit::Ask && matches!(it.kind, ReasonKind::Rule | ReasonKind::Upgrade)
    };
    approval.ids.conversation_id.is_some()
        && approval.ask.upgrades.is_empty()
        && !approval.ask.reasons.iter().any(asks_on)
        && approval.quorum <= 1
}

#[derive(Debug, PartialEq, Eq)]
enum Choice {
    Once(Option<String>),
    Kind(Option<String>),
    Edit(Option<String>),
    Later,
    Deny(Option<String>),
}

/// How a question ended.
#[derive(Debug)]
pub(crate) enum Said {
    Answer(Box<Answer>),
    Later,
    Closed,
    TooLate,
}

impl Prompt {
    /// Anything else than an answer asks again.
    pub(crate) fn answer(&self, approval: &Approval, offer: Offer) -> Said {
        self.say(&shown(approval, self.paint));
        loop {
            let line = match self.line(&offer.question(), approval.expires_at) {
                Typed::Line(line) => line,
                Typed::Closed => {
                    self.say("\n");
                    return Said::Closed;
                }
                Typed::TooLate => {
                    self.say("\n");
                    return Said::TooLate;
                }
            };
            let answer = match offer.read(&line) {
                Some(Choice::Once(reason)) => Answer::AllowOnce { reason },
                Some(Choice::Kind(reason)) => Answer::AllowKind {
                    reason,
                    expires_at: None,
                },
                Some(Choice::Deny(reason)) => Answer::Deny { reason },
                Some(Choice::Later) => return Said::Later,
                Some(Choice::Edit(reason)) => match self.edited(approval) {
                    Some(program) => Answer::Edit { program, reason },
                    None => continue,
                },
                None => {
                    self.say("type one of the letters; words after it are your reason\n");
                    continue;
                }
            };
            return Said::Answer(Box::new(answer));
        }
    }

    /// `None`: nothing came of it, and why is said.
    fn edited(&self, approval: &Approval) -> Option<Program> {
        let (form, before) = rewrite::text(&approval.ask.argv);
        let after = match editor::edit(&before, form.suffix()) {
            Ok(after) => after,
            Err(error) => {
                self.tell(&error.to_string());
                error.hints.iter().for_each(|hint| self.tell(hint));
                return None;
            }
        };
        if after.trim_end() == before.trim_end() {
            self.say("nothing was changed\n");
            return None;
        }
        match rewrite::program(form, &after) {
            Ok(program) => Some(program),
            Err(error) => {
                self.tell(&error.message);
                None
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn offer(kind: Option<&str>) -> Offer {
        Offer {
            kind: kind.map(str::to_owned),
            edit: kind.is_some(),
            later: false,
        }
    }

    #[test]
    fn only_a_plain_yes_is_a_yes() {
        let all = offer(Some("`make`"));
        assert_eq!(all.read("o"), Some(Choice::Once(None)));
        assert_eq!(all.read("K"), Some(Choice::Kind(None)));
        assert_eq!(
            all.read("deny  not today"),
            Some(Choice::Deny(Some("not today".to_owned())))
        );
        for other in ["", "y", "yes", "1", "on", "allow", "oo", "\u{1b}[A", "l"] {
            assert_eq!(all.read(other), None, "{other:?}");
        }
    }

    #[test]
    fn a_kind_is_offered_only_where_it_would_be_worth_something() {
        let mut approval = crate::commands::sample::approval();
        let kind = |approval: &Approval| Offer::here(approval, Some("`curl`")).kind.is_some();
        assert!(!kind(&approval));
        approval.ask.upgrades.clear();
        approval.ids.conversation_id = Some("c".to_owned());
        assert!(!kind(&approval), "a rule asks");
        approval.ask.reasons[0].kind = ReasonKind::Mode;
        assert!(kind(&approval));
        assert_eq!(Offer::here(&approval, None).kind, None);
        approval.quorum = 2;
        assert!(!kind(&approval), "several people");
    }

    #[test]
    fn what_is_not_possible_is_not_offered_and_not_taken() {
        let few = offer(None);
        assert_eq!(few.question(), "allow it? [o]nce, [d]eny: ");
        assert_eq!(few.read("k"), None);
        assert_eq!(few.read("e"), None);
        let all = offer(Some("`make`\n\u{1b}[2J"));
        let asked = all.question();
        assert!(
            asked.contains("[k]ind in this conversation (`make`"),
            "{asked}"
        );
        assert!(
            !asked.contains('\n') && !asked.contains('\u{1b}'),
            "{asked:?}"
        );
    }
}
