//! The skills that come with Glovebox, as they lie in `skills/`.

use std::sync::OnceLock;

use crate::package::Package;
use crate::skill::{Origin, Skill};

macro_rules! skills {
    ($($id:literal: [$($file:literal),+ $(,)?];)+) => {
        const ALL: &[(&str, &[(&str, &str)])] = &[$(
            ($id, &[$(($file, include_str!(concat!("../../../skills/", $id, "/", $file)))),+]),
        )+];
    };
}

skills! {
    "archive.unpack": ["manifest.json", "run.py"];
    "csv.summary": ["manifest.json", "run.py"];
    "data.query": ["manifest.json", "run.py"];
    "git.diff": ["manifest.json", "run.py"];
    "javascript.run": ["manifest.json"];
    "json.query": ["manifest.json", "run.py"];
    "python.run": ["manifest.json"];
    "shell.run": ["manifest.json"];
    "text.search": ["manifest.json", "run.py"];
}

/// By id. One that is not right is left out here, and a test says so.
pub(crate) fn all() -> &'static [Skill] {
    static READY: OnceLock<Vec<Skill>> = OnceLock::new();
    READY.get_or_init(|| {
        let made = ALL.iter().map(|(id, files)| {
            let files = files.iter();
            let files = files.map(|(path, text)| ((*path).to_owned(), text.as_bytes().to_vec()));
            Package::of(files).and_then(|package| Skill::new(package, id, Origin::Shipped))
        });
        made.filter_map(Result::ok).collect()
    })
}

pub(crate) fn find(id: &str) -> Option<&'static Skill> {
    all().iter().find(|skill| skill.id() == id)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_one_is_right_and_listed_with_all_of_its_files() {
        for (id, files) in ALL {
            let files = files.iter();
            let files = files.map(|(path, text)| ((*path).to_owned(), text.as_bytes().to_vec()));
            let package = Package::of(files).unwrap();
            let made = Skill::new(package.clone(), id, Origin::Shipped);
            made.unwrap_or_else(|problems| panic!("{id}: {:?}", problems.list()));
            let there = std::path::Path::new("../../skills").join(id);
            assert_eq!(Package::read(&there).unwrap(), package, "{id}");
        }
        let dirs = std::fs::read_dir("../../skills").unwrap();
        let names = dirs.map(|it| it.unwrap().file_name().into_string().unwrap());
        let mut names: Vec<_> = names.filter(|it| !it.starts_with('_')).collect();
        names.sort();
        assert_eq!(names, ALL.iter().map(|it| it.0).collect::<Vec<_>>());
    }
}
