//! Programs that execute no file of their working directory and obey no file that was not named to
//! them. Every other program may run anything that lies there: this is the list of the exceptions,
//! and where an option could run or write something, of the options too.

/// What a program with these words does to files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tame {
    /// It shows what it is named, and counts as a read where reads are automatic.
    Reads,
    /// It changes nothing either, and shows no files of its own accord.
    Quiet,
    /// It may change or remove files.
    Writes,
}

/// Which words a program may be given.
enum Words {
    /// These options alone, and any operands.
    Only(Options),
    /// By a rule of its own.
    Checked(fn(&[Option<&str>]) -> bool),
}

struct Options {
    /// Letters without and with a value.
    flags: &'static str,
    values: &'static str,
    /// Long ones as they are written in full, without and with a value.
    long: &'static str,
    long_values: &'static str,
}

/// They read and show, whatever their options are.
const READS: &str = ": cat du echo grep head ls pwd stat tail wc whereis which";
/// They compute, compare or wait, whatever their options are.
const QUIET: &str = "arch b2sum base64 basename cd cksum cmp comm cut df dirname egrep exit expand \
    false fgrep fold id join md5sum nl nproc od paste readlink realpath seq sha1sum sha256sum \
    sha512sum sleep sum tac tr true tsort uname whoami";
/// They change files that are named to them, and start nothing.
const CHANGES: &str =
    "chgrp chmod chown cp dd link ln mkdir mkfifo mv rm rmdir tee touch truncate unlink";

const RIPGREP: Options = Options {
    flags: "FHINPSUVachilLnopqsuvwx0.",
    values: "ABCEMTdefgjmrt",
    long: "case-sensitive color column count count-matches crlf debug files files-with-matches \
    files-without-match fixed-strings glob-case-insensitive heading hidden ignore-case \
    invert-match json line-number line-regexp multiline multiline-dotall no-column \
    no-config no-filename no-heading no-ignore no-ignore-vcs no-line-number no-messages \
    null one-file-system only-matching passthru pcre2 pretty quiet smart-case stats text \
    trim type-list unrestricted version vimgrep with-filename word-regexp",
    long_values: "after-context before-context color colors context encoding engine file glob iglob \
    max-columns max-count max-depth max-filesize path-separator regexp replace sort \
    sortr threads type type-not",
};
const SILVER: Options = Options {
    flags: "0HQSUacfilLnostuvw",
    values: "ABCGgmp",
    long: "all-text all-types column count files-with-matches files-without-matches filename \
    fixed-strings follow heading hidden ignore-case invert-match literal nocolor \
    nofilename nogroup noheading nonumbers null numbers only-matching one-device silent \
    smart-case stats unrestricted vimgrep word-regexp",
    long_values: "",
};
const FILE: Options = Options {
    flags: "0EILNbhiklnprsv",
    values: "F",
    long: "brief dereference keep-going mime mime-encoding mime-type no-buffer no-dereference \
    no-pad raw version",
    long_values: "separator",
};
const TREE: Options = Options {
    flags: "ACDFJNQSUXacdfghilnpqrstuvx",
    values: "ILP",
    long: "dirsfirst du filesfirst ignore-case inodes device noreport nolinks prune si version",
    long_values: "charset filelimit timefmt sort",
};
const SORT: Options = Options {
    flags: "CMRVbcdfghimnrsuz",
    values: "Skt",
    long: "check dictionary-order general-numeric-sort human-numeric-sort ignore-case \
    ignore-leading-blanks month-sort numeric-sort random-sort reverse stable unique \
    version-sort zero-terminated debug merge",
    long_values: "buffer-size field-separator key parallel",
};
const DIFF: Options = Options {
    flags: "BENTabcdeinpqrstuwy",
    values: "CUWx",
    long: "brief ignore-all-space ignore-blank-lines ignore-case ignore-space-change new-file \
    recursive report-identical-files side-by-side text unified",
    long_values: "color context exclude label unified width",
};
const DATE: Options = Options {
    flags: "IRu",
    values: "dr",
    long: "utc universal rfc-email iso-8601",
    long_values: "date iso-8601 reference rfc-3339",
};

/// What `find` may be told: tests, and actions that print.
const FIND: &str = "-H -L -P -a -amin -and -anewer -atime -cmin -cnewer -ctime -daystart -depth -empty \
    -executable -false -follow -gid -group -ilname -iname -inum -ipath -iregex \
    -iwholename -links -lname -ls -maxdepth -mindepth -mmin -mount -mtime -name -newer \
    -not -o -or -path -perm -print -print0 -printf -prune -quit -readable -regex \
    -regextype -samefile -size -type -uid -user -xdev";

/// By its plain name and its arguments; a word that only the shell knows is `None`. `None` as the
/// answer: it may run anything.
pub(crate) fn tame(name: &str, arguments: &[Option<&str>]) -> Option<Tame> {
    for (list, tame) in [
        (READS, Tame::Reads),
        (QUIET, Tame::Quiet),
        (CHANGES, Tame::Writes),
    ] {
        if listed(list, name) {
            return Some(tame);
        }
    }
    let (words, tame) = match name {
        "ag" => (Words::Only(SILVER), Tame::Reads),
        "command" => (Words::Checked(|it| it.len() == 2), Tame::Quiet),
        "date" => (Words::Only(DATE), Tame::Quiet),
        "diff" => (Words::Only(DIFF), Tame::Quiet),
        "file" => (Words::Only(FILE), Tame::Reads),
        "find" => (Words::Checked(is_plain_find), Tame::Reads),
        "printf" => (
            Words::Checked(|it| it.first().is_some_and(|it| is_operand(*it))),
            Tame::Quiet,
        ),
        "rg" => (Words::Only(RIPGREP), Tame::Reads),
        "set" => (Words::Checked(is_plain_set), Tame::Quiet),
        "sort" => (Words::Only(SORT), Tame::Quiet),
        "[" | "test" => (Words::Checked(is_plain_test), Tame::Quiet),
        "tree" => (Words::Only(TREE), Tame::Reads),
        "uniq" => (Words::Checked(is_plain_uniq), Tame::Quiet),
        _ => return None,
    };
    let plain = match words {
        Words::Only(options) => options.allow(arguments),
        Words::Checked(check) => check(arguments),
    };
    plain.then_some(tame)
}

/// Lists are words with blanks between them.
fn listed(list: &str, word: &str) -> bool {
    list.split_ascii_whitespace().any(|it| it == word)
}

fn is_operand(word: Option<&str>) -> bool {
    word.is_some_and(|it| !it.starts_with('-'))
}

fn is_plain_find(words: &[Option<&str>]) -> bool {
    words.iter().all(|word| {
        let Some(word) = word else { return false };
        !word.starts_with('-') || listed(FIND, word) || is_signed(word)
    })
}

/// `-mtime -2`.
fn is_signed(word: &str) -> bool {
    let digits = word.strip_prefix('-').unwrap_or(word);
    digits.starts_with(|it: char| it.is_ascii_digit())
}

fn is_plain_test(words: &[Option<&str>]) -> bool {
    words
        .iter()
        .all(|it| it.is_some_and(|it| !matches!(it, "-v" | "-R")))
}

/// The second operand would be written.
fn is_plain_uniq(words: &[Option<&str>]) -> bool {
    let is_option = |it: &str| it.len() > 1 && it.starts_with('-') && it != "--";
    let operands = words.iter().filter(|it| !it.is_some_and(is_option));
    operands.count() < 2 && words.iter().all(Option::is_some)
}

fn is_plain_set(words: &[Option<&str>]) -> bool {
    let mut words = words.iter();
    while let Some(word) = words.next() {
        let Some(letters) = word.and_then(|it| it.strip_prefix('-')) else {
            return false;
        };
        for letter in letters.chars() {
            let plain = match letter {
                'e' | 'u' | 'x' => true,
                'o' => words
                    .next()
                    .and_then(|it| *it)
                    .is_some_and(crate::strict::is_plain_setting),
                _ => false,
            };
            if !plain {
                return false;
            }
        }
    }
    true
}

impl Options {
    /// A word that is not known may be any option.
    fn allow(&self, words: &[Option<&str>]) -> bool {
        let mut words = words.iter();
        while let Some(word) = words.next() {
            let Some(word) = word else { return false };
            if *word == "--" {
                return words.all(Option::is_some);
            }
            let taken = match word.strip_prefix("--") {
                Some(long) => self.long(long),
                None => match word.strip_prefix('-') {
                    Some(letters) if !letters.is_empty() => self.short(letters),
                    _ => Some(false),
                },
            };
            match taken {
                None => return false,
                Some(true) if words.next().is_some_and(Option::is_none) => return false,
                Some(_) => {}
            }
        }
        true
    }

    /// Whether it takes the next word; `None` if it is not listed.
    fn long(&self, word: &str) -> Option<bool> {
        match word.split_once('=') {
            Some((name, _)) => listed(self.long_values, name).then_some(false),
            None if listed(self.long, word) => Some(false),
            None => listed(self.long_values, word).then_some(true),
        }
    }

    fn short(&self, letters: &str) -> Option<bool> {
        for (at, letter) in letters.char_indices() {
            if self.values.contains(letter) {
                return Some(at + letter.len_utf8() == letters.len());
            }
            if !self.flags.contains(letter) {
                return None;
            }
        }
        Some(false)
    }
}
