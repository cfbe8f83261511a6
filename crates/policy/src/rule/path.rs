//! Globs of paths, matched on cleaned absolute paths. Case counts; `*` never crosses `/`, `**`
//! does. A link in a command's words is not followed: the sandbox denies the file, whatever leads
//! to it. A last `/**` of a rule that denies or asks means the directory itself as well.

use glovebox_model::Glob;

/// Without `.`, `..` and double separators, against a directory. `..` at the root stays there.
pub(crate) fn clean(path: &str, cwd: &str) -> String {
    let mut parts: Vec<&str> = Vec::new();
    let base = if path.starts_with('/') { "" } else { cwd };
    for part in base.split('/').chain(path.split('/')) {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop();
            }
            name => parts.push(name),
        }
    }
    format!("/{}", parts.join("/"))
}

/// A path that a program names.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum PathFact {
    Known(String),
    /// A pattern of the shell's, such as `src/*.py`, or `~/x`.
    Pattern(String),
    /// Only the shell knows.
    Unknown(String),
}

impl PathFact {
    /// `known` is false for a word that the shell has yet to expand.
    pub(crate) fn of(word: &str, known: bool, cwd: &str) -> Self {
        if known {
            return Self::Known(clean(word, cwd));
        }
        if word.contains(['$', '`', '{', '\\', '\'', '"', '[', '!', '(']) {
            return Self::Unknown(word.to_owned());
        }
        if !word.starts_with('~') && !word.contains(['*', '?']) {
            // Nothing of the shell's: what a program such as `xargs` puts in.
            return Self::Unknown(word.to_owned());
        }
        match word.strip_prefix('~') {
            // Whose home it is depends on who runs it.
            Some(rest) => {
                let rest = rest.split_once('/').map_or("", |(_, rest)| rest);
                let below = clean(rest, "/");
                Self::Pattern(match below.as_str() {
                    "/" => "/**".to_owned(),
                    below => format!("/**{below}"),
                })
            }
            None => Self::Pattern(clean(word, cwd)),
        }
    }

    pub(crate) fn shown(&self) -> &str {
        match self {
            Self::Known(text) | Self::Pattern(text) | Self::Unknown(text) => text,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PathGlob {
    glob: Glob,
    /// The directory of a glob that ends with `/**`.
    whole: Option<Glob>,
    /// The directories that all it matches lies below, from the root on.
    above: Vec<String>,
}

impl PathGlob {
    pub(crate) fn new(text: &str) -> Result<Self, String> {
        if !text.starts_with('/') && !text.starts_with("**") {
            return Err(
                "is not an absolute path; begin it with `/` (the workspace is `/workspace/work`) or `**/`"
                    .to_owned(),
            );
        }
        let odd = |part: &str| part == "." || part == "..";
        if text.split('/').any(odd) {
            return Err("holds `.` or `..`, which no cleaned path does".to_owned());
        }
        if text.len() > 1 && text.ends_with('/') || text.contains("//") {
            return Err(
                "ends with `/` or holds `//`, which no cleaned path does; `DIRECTORY/**` means a directory and all in it"
                    .to_owned(),
            );
        }
        let whole = text.strip_suffix("/**").map(|it| Glob::new(it, Some('/')));
        Ok(Self {
            glob: Glob::new(text, Some('/')),
            whole,
            above: above(text),
        })
    }

    pub(crate) fn text(&self) -> &str {
        self.glob.text()
    }

    /// The one path that it names, with all below it: nothing else can match, whatever appears.
    pub(crate) fn literal(&self) -> Option<&str> {
        self.whole.as_ref().unwrap_or(&self.glob).literal()
    }

    /// Whether it matches this cleaned path.
    pub(crate) fn names(&self, path: &str) -> bool {
        self.glob.matches(path) || self.whole.as_ref().is_some_and(|it| it.matches(path))
    }

    /// Whether it can match a directory or anything below it.
    pub(crate) fn reaches(&self, directory: &str) -> bool {
        let inside = Glob::new(
            &format!("{}/**", directory.trim_end_matches('/')),
            Some('/'),
        );
        self.names(directory) || self.glob.overlaps(&inside)
    }

    /// It begins with a wildcard, so it means every directory that there is.
    pub(crate) fn is_anywhere(&self) -> bool {
        let first = self.text().trim_start_matches('/').split('/').next();
        first.is_none_or(|first| first.contains(['*', '?']))
    }

    pub(crate) fn covers(&self, path: &PathFact) -> bool {
        match path {
            PathFact::Known(path) => self.glob.matches(path),
            PathFact::Pattern(_) | PathFact::Unknown(_) => false,
        }
    }

    pub(crate) fn touches(&self, path: &PathFact) -> bool {
        let either = |test: &dyn Fn(&Glob) -> bool| {
            test(&self.glob) || self.whole.as_ref().is_some_and(test)
        };
        match path {
            PathFact::Known(path) => either(&|glob| glob.matches(path)),
            PathFact::Pattern(pattern) => {
                let pattern = Glob::new(pattern, Some('/'));
                either(&|glob| glob.overlaps(&pattern))
            }
            PathFact::Unknown(_) => true,
        }
    }

    /// Whether a path stands for a directory above, with which the rest is reached.
    pub(crate) fn is_below(&self, path: &PathFact) -> bool {
        match path {
            PathFact::Known(path) => self.above.contains(path),
            PathFact::Pattern(pattern) => {
                let pattern = Glob::new(pattern, Some('/'));
                self.above.iter().any(|it| pattern.matches(it))
            }
            PathFact::Unknown(_) => true,
        }
    }
}

/// None for a glob that may match anywhere: every directory would be above it.
fn above(glob: &str) -> Vec<String> {
    let wild = |part: &&str| part.contains(['*', '?']);
    let fixed = glob.split('/').take_while(|it| !wild(it)).count();
    let parts: Vec<&str> = glob.split('/').collect();
    // A glob without any wildcard lies in its directory.
    let fixed = fixed.min(parts.len().saturating_sub(1));
    if fixed < 2 {
        return Vec::new();
    }
    let joined = (1..=fixed).map(|end| parts[..end].join("/"));
    joined
        .map(|it| if it.is_empty() { "/".to_owned() } else { it })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_cleaned_against_their_directory() {
        for (path, expected) in [
            ("a", "/w/a"),
            ("./a//b/", "/w/a/b"),
            ("../../../etc/passwd", "/etc/passwd"),
            ("/etc/../etc/./shadow", "/etc/shadow"),
            ("/", "/"),
            ("", "/w"),
        ] {
            assert_eq!(clean(path, "/w"), expected, "{path}");
        }
    }

    #[test]
    fn what_the_shell_will_expand_is_compared_as_a_pattern() {
        let fact = |word| PathFact::of(word, false, "/workspace/work");
        let glob = |text| PathGlob::new(text).unwrap();
        let ssh = glob("/home/*/.ssh/**");
        assert!(ssh.touches(&fact("~/.ssh/id_rsa")));
        assert!(ssh.touches(&fact("~root/.ssh")));
        assert!(!ssh.touches(&fact("*.py")));
        assert!(ssh.touches(&fact("$HOME/x")));
        assert!(!glob("/**").covers(&fact("*.py")));
    }

    #[test]
    fn the_directory_itself_is_denied_with_what_is_in_it() {
        let glob = PathGlob::new("/workspace/work/.git/**").unwrap();
        let path = PathFact::Known("/workspace/work/.git".to_owned());
        assert!(glob.touches(&path));
        assert!(!glob.covers(&path));
        assert!(!glob.touches(&PathFact::Known("/workspace/work/.github".to_owned())));
        for (path, expected) in [
            ("/", true),
            ("/workspace/work", true),
            ("/workspace/work/src", false),
            ("/workspace/work/.git/objects", false),
        ] {
            let path = PathFact::Known(path.to_owned());
            assert_eq!(glob.is_below(&path), expected, "{path:?}");
        }
        let anywhere = PathGlob::new("**/.env").unwrap();
        assert!(!anywhere.is_below(&PathFact::Known("/".to_owned())));
    }
}
