//! Imports: what needs a package, and what a declared one brings.

use std::collections::BTreeSet;
use std::path::Path;

use super::super::{Interpreters, Surroundings, check};
use super::{WELL, of_text, rules_of};
use crate::config::{Config, ConfigOptions};

#[test]
fn imports_that_may_fail_or_are_for_type_checkers_need_no_package() {
    let text = format!(
        "from __future__ import annotations\nfrom typing import TYPE_CHECKING\n\nif TYPE_CHECKING:\n    import \
         numpy\n\ntry:\n    import orjson\nexcept (ImportError, ValueError):\n    orjson = None\n\n{WELL}"
    );
    assert_eq!(of_text(&text), [] as [&str; 0]);
    let text = format!("try:\n    import orjson\nexcept ValueError:\n    orjson = None\n\n{WELL}");
    assert_eq!(of_text(&text), ["undeclared-import"]);
    for code in [
        "try:\n    import json\nexcept ImportError:\n    import simplejson as json\n",
        "try:\n    import orjson\nexcept (ModuleNotFoundError, ValueError):\n    import ujson\nelse:\n    import orjson_x\n",
        "import sys\nif sys.version_info < (3, 11):\n    import tomli\nelse:\n    import tomllib\n",
        "import sys\nif sys.platform == 'win32':\n    import win32api\n",
        "import platform\nif platform.system() == 'Windows':\n    import win32api\n",
        "import os\nif os.name == 'nt':\n    import win32api\n",
        "import sys\nif 'PyPy' in sys.version:\n    import win32api\n",
        "import sys\nif sys.implementation.name == 'pypy':\n    import win32api\n",
        "import sys\nif is_slow(sys.implementation):\n    import win32api\n",
        "import contextlib\nwith contextlib.suppress(ImportError):\n    import orjson\n",
        "from contextlib import suppress\nwith suppress(ModuleNotFoundError):\n    import orjson\n",
        "from importlib.util import find_spec\nif find_spec('orjson'):\n    import orjson\n",
        "import importlib.util\nif importlib.util.find_spec('orjson') is not None:\n    import orjson\n",
        "if __name__ == '__main__':\n    import orjson\n    print(input())\n",
        "import _thread\n",
    ] {
        assert_eq!(of_text(&format!("{code}\n{WELL}")), [] as [&str; 0], "{code}");
    }
    for code in [
        "import contextlib\nwith contextlib.suppress(ValueError):\n    import orjson\n",
        "with open(ImportError):\n    import orjson\n",
        "if x:\n    import orjson\n",
        "import typing\nif typing.TYPE_CHECKING:\n    import numpy\nelse:\n    import orjson\n",
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import numpy\nelse:\n    import orjson\n",
        "if __name__ == '__main__':\n    import numpy\nelse:\n    import orjson\n",
    ] {
        assert_eq!(of_text(&format!("{code}\n{WELL}")), ["undeclared-import"], "{code}");
    }
}

pub(super) fn report_of(folder: &Path, installed: Installed) -> super::super::Report {
    let wanted = ConfigOptions { tools: vec![folder.to_owned()], ..ConfigOptions::default() };
    let config = Config::load(&wanted, folder).unwrap();
    let surroundings =
        Surroundings { config, interpreters: Interpreters::default(), installed, built_in: Vec::new(), known: None };
    check(&[folder.to_owned()], &[], &surroundings)
}

fn level_of(folder: &Path, text: &str, installed: Installed) -> Option<(super::super::Level, String)> {
    std::fs::write(folder.join("one.py"), text).unwrap();
    let report = report_of(folder, installed);
    let told = report.findings().find(|(_, finding)| finding.rule.name == "undeclared-import");
    told.map(|(_, finding)| (finding.level, finding.fix.clone()))
}

type Installed = fn(&Config, &crate::discovery::ToolFile) -> Option<BTreeSet<String>>;

#[test]
fn what_a_declared_package_may_bring_is_no_error() {
    use super::super::Level;
    let folder = tempfile::tempdir().unwrap();
    let level = |dependencies: &str, code: &str, installed| {
        let text = format!("# /// script\n# dependencies = {dependencies}\n# ///\n{code}\n\n{WELL}");
        level_of(folder.path(), &text, installed)
    };
    let unbuilt: Installed = |_, _| None;
    let (told, fix) = level("[\"shed-tools\"]", "import shedlib", unbuilt).unwrap();
    assert_eq!(told, Level::Warning);
    assert!(
        fix.starts_with("does shed-tools bring it? then say so with `# hostler: ignore[undeclared-import]`; else if"),
        "{fix}"
    );
    let (told, fix) = level("[\"httpx\"]", "import httpx, bs4", unbuilt).unwrap();
    assert_eq!(told, Level::Warning);
    assert!(fix.ends_with("add \"beautifulsoup4\" to `dependencies` in the header"), "{fix}");
    assert_eq!(level("[\"requests\"]", "import request", unbuilt).unwrap().0, Level::Error, "a slip");
    assert_eq!(level("[]", "import shedlib", unbuilt).unwrap().0, Level::Error, "nothing could bring it");
    let (_, fix) = level_of(folder.path(), &format!("import shedlib\n\n{WELL}"), unbuilt).unwrap();
    assert!(fix.contains("give the file a header with `dependencies = [\"shedlib\"]`"), "{fix}");
    for path in ["import sys\nsys.path.insert(0, '/shed')", "import site\nsite.addsitedir('/shed')"] {
        let (told, fix) = level("[]", &format!("{path}\nimport shedlib"), unbuilt).unwrap();
        assert_eq!(told, Level::Warning, "who knows what is there");
        assert!(fix.starts_with("if a folder that this file adds to sys.path has it, "), "{fix}");
    }
    for (dependency, module) in [("PyOpenGL", "OpenGL"), ("pymongo", "bson")] {
        assert_eq!(level(&format!("[\"{dependency}\"]"), &format!("import {module}"), unbuilt), None, "{module}");
    }
    let built: Installed = |_, _| Some(BTreeSet::from(["shedlib".to_owned()]));
    assert_eq!(level("[\"shed-tools\"]", "import shedlib", built), None);
    assert_eq!(level("[\"shed-tools\"]", "import barnlib", built).unwrap().0, Level::Error);
}

#[test]
fn only_packages_that_no_import_explains_are_asked_about() {
    let folder = tempfile::tempdir().unwrap();
    let asked = |dependencies: &str, code: &str| {
        let text = format!("# /// script\n# dependencies = [{dependencies}]\n# ///\n{code}\n\n{WELL}");
        let (_, fix) = level_of(folder.path(), &text, |_, _| None).unwrap();
        fix.split(" bring it?").next().unwrap().to_owned()
    };
    assert_eq!(asked("\"shed-tools\", \"httpx\"", "import httpx, shedlib"), "does shed-tools");
    assert_eq!(asked("\"shed-tools\", \"barn-tools\"", "import shedlib"), "does shed-tools or barn-tools");
    assert_eq!(asked("\"httpx\"", "import httpx, shedlib"), "does httpx");
    let many = "\"a-tools\", \"b-tools\", \"c-tools\", \"d-tools\"";
    assert_eq!(asked(many, "import shedlib"), "does one of the declared packages");
}

#[test]
fn a_neighbour_needs_no_package() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("one.py"), format!("import _shared\nfrom helper import x\n\n{WELL}")).unwrap();
    std::fs::write(folder.path().join("_shared.py"), "").unwrap();
    std::fs::create_dir(folder.path().join("helper")).unwrap();
    assert_eq!(rules_of(folder.path()), []);
}
