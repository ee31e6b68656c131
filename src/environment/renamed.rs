//! Names under which a package is looked for and not found, or an old one is found that builds nowhere any more.

use super::trouble::Trouble;
use crate::pep723::{distribution_of, normalised, package_of};

/// What is written, and what is meant by it.
const RENAMED: &[(&str, &str)] = &[
    ("beautifulsoup", "beautifulsoup4"),
    ("cv2", "opencv-python"),
    ("dateutil", "python-dateutil"),
    ("dotenv", "python-dotenv"),
    ("opencv", "opencv-python"),
    ("pil", "pillow"),
    ("pycrypto", "pycryptodome"),
    ("skimage", "scikit-image"),
    ("sklearn", "scikit-learn"),
    ("yaml", "pyyaml"),
];

/// The package that is meant by this name.
pub(super) fn meant(package: &str) -> Option<&'static str> {
    renamed(package).or_else(|| distribution_of(package)).filter(|meant| *meant != normalised(package))
}

/// The package that took over from the one of this name, or is called otherwise than everybody calls it.
pub(super) fn renamed(package: &str) -> Option<&'static str> {
    let name = normalised(package);
    RENAMED.iter().find(|(old, _)| *old == name).map(|(_, new)| *new)
}

impl Trouble<'_> {
    /// What is meant by a package, as its dependency writes it: uv writes all names small.
    pub(super) fn meant(&self, package: &str) -> Option<&'static str> {
        meant(self.wish(package).map_or(package, package_of))
    }
}

#[cfg(test)]
mod tests {
    use super::meant;

    #[test]
    fn what_is_meant_is_known_by_old_names_and_by_modules() {
        for (written, right) in
            [("BeautifulSoup", "beautifulsoup4"), ("PIL", "pillow"), ("dateutil", "python-dateutil")]
        {
            assert_eq!(meant(written), Some(right));
        }
        assert_eq!(meant("serial"), Some("pyserial"));
        for fine in ["pillow", "rich", "docker", "setuptools"] {
            assert_eq!(meant(fine), None, "{fine}");
        }
    }
}
