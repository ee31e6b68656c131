//! Packages whose modules are called otherwise than they are.

/// The name of a distribution as indexes compare it: `Ruamel.YAML` is `ruamel-yaml`.
pub fn normalised(name: &str) -> String {
    let mut text = String::with_capacity(name.len());
    for c in name.chars() {
        let c = if matches!(c, '-' | '_' | '.') { '-' } else { c.to_ascii_lowercase() };
        if !(c == '-' && text.ends_with('-')) {
            text.push(c);
        }
    }
    text
}

/// Whether a package is known, or called so, that it brings a top-level module.
pub fn brings(package: &str, module: &str) -> bool {
    let package = normalised(package);
    let module_name = normalised(module);
    let others = OTHERWISE.iter().filter(|(name, _)| *name == package);
    if others.clone().any(|(_, modules)| modules.contains(&module)) {
        return true;
    }
    // `google-cloud-storage` brings `google`, `azure-identity` brings `azure`, `python-telegram-bot` brings `telegram`.
    let bare = package.strip_prefix("python-").unwrap_or(&package);
    let bare = bare.strip_suffix("-python").unwrap_or(bare);
    let bare = bare.strip_suffix("-py").unwrap_or(bare);
    let first = package.split('-').next().unwrap_or_default();
    package == module_name || bare == module_name || (NAMESPACES.contains(&first) && first == module_name)
}

/// Whether a package is known to bring a module along with what it needs itself: `numpy` comes with `pandas`. It is there
/// as long as that stays so.
pub fn comes_along(package: &str, module: &str) -> bool {
    let package = normalised(package);
    let mut along = ALONG.iter().filter(|(name, _)| *name == package).flat_map(|(_, needs)| *needs);
    along.any(|need| brings(need, module) || comes_along_once(need, module))
}

fn comes_along_once(package: &str, module: &str) -> bool {
    ALONG.iter().filter(|(name, _)| *name == package).flat_map(|(_, needs)| *needs).any(|need| brings(need, module))
}

/// The package that brings a module, where it is called otherwise or is a namespace's.
pub fn distribution_of(module: &str) -> Option<&'static str> {
    OTHERWISE.iter().find(|(_, modules)| modules.contains(&module)).map(|(name, _)| *name)
}

/// The modules that a package brings, as far as its name tells.
pub fn modules_of(package: &str) -> Vec<String> {
    let package = normalised(package);
    match OTHERWISE.iter().find(|(name, _)| *name == package) {
        Some((_, modules)) => modules.iter().map(|module| (*module).to_owned()).collect(),
        None => vec![package.replace('-', "_")],
    }
}

/// Whether a module is of a package that so many know that its name is no slip of the pen.
pub fn is_well_known(module: &str) -> bool {
    WELL_KNOWN.contains(&module) || distribution_of(module).is_some()
}

/// Modules called as their packages are.
#[rustfmt::skip]
const WELL_KNOWN: &[&str] = &[
    "aiohttp", "anthropic", "anyio", "arrow", "boto3", "botocore", "certifi", "cffi", "click", "colorama", "cryptography",
    "django", "fastapi", "fastmcp", "feedparser", "fire", "flask", "geopy", "html5lib", "httpx", "humanize", "idna", "jinja2",
    "joblib", "jsonschema", "keyring", "lxml", "markdown", "matplotlib", "mcp", "networkx", "nltk", "numpy", "openai",
    "openpyxl", "orjson", "pandas", "paramiko", "pendulum", "playwright", "plotly", "polars", "psutil", "psycopg", "pyarrow",
    "pydantic", "pygments", "pymongo", "pypdf", "pytest", "pytz", "redis", "regex", "requests", "rich", "scipy", "scrapy",
    "seaborn", "selenium", "simplejson", "six", "spacy", "starlette", "sympy", "tabulate", "tenacity", "textual", "tiktoken",
    "toml", "tomli", "torch", "tornado", "tqdm", "transformers", "typer", "ujson", "urllib3", "uvicorn", "uvloop",
    "watchdog", "websockets", "wikipedia", "xarray", "xmltodict", "yarl",
];

/// What well-known packages need, by the names of packages.
#[rustfmt::skip]
const ALONG: &[(&str, &[&str])] = &[
    ("aiohttp", &["yarl", "multidict", "attrs", "frozenlist"]), ("anthropic", &["httpx", "pydantic", "anyio"]),
    ("black", &["click", "pathspec", "platformdirs"]), ("boto3", &["botocore", "s3transfer", "jmespath"]),
    ("botocore", &["urllib3", "python-dateutil", "jmespath"]), ("cryptography", &["cffi"]), ("django", &["asgiref", "sqlparse"]),
    ("fastapi", &["starlette", "pydantic", "anyio", "typing-extensions"]), ("fastmcp", &["mcp", "httpx", "pydantic"]),
    ("flask", &["werkzeug", "jinja2", "click", "itsdangerous", "markupsafe", "blinker"]), ("gitpython", &["gitdb"]),
    ("google-api-python-client", &["google-auth", "httplib2"]), ("hydra-core", &["omegaconf", "antlr4-python3-runtime"]),
    ("httpx", &["httpcore", "h11", "anyio", "certifi", "idna"]), ("huggingface-hub", &["tqdm", "pyyaml", "filelock", "fsspec"]),
    ("jinja2", &["markupsafe"]), ("jsonschema", &["attrs", "referencing", "rpds-py"]),
    ("matplotlib", &["numpy", "pillow", "cycler", "packaging", "pyparsing", "python-dateutil"]),
    ("mcp", &["anyio", "httpx", "pydantic", "starlette", "uvicorn"]), ("nltk", &["click", "joblib", "regex", "tqdm"]),
    ("openai", &["httpx", "pydantic", "anyio", "tqdm"]), ("openai-whisper", &["torch", "numpy", "tiktoken", "tqdm"]),
    ("opencv-python", &["numpy"]), ("opencv-python-headless", &["numpy"]), ("pandas", &["numpy", "python-dateutil"]),
    ("playwright", &["greenlet", "pyee"]), ("pydantic", &["pydantic-core", "typing-extensions", "annotated-types"]),
    ("pydantic-settings", &["pydantic", "python-dotenv"]), ("pymongo", &["dnspython"]), ("pytest", &["pluggy", "packaging"]),
    ("requests", &["urllib3", "certifi", "idna", "charset-normalizer"]), ("rich", &["pygments", "markdown-it-py"]),
    ("scikit-image", &["numpy", "scipy", "networkx", "pillow"]), ("scikit-learn", &["numpy", "scipy", "joblib", "threadpoolctl"]),
    ("imbalanced-learn", &["scikit-learn", "numpy", "scipy"]), ("scipy", &["numpy"]), ("seaborn", &["matplotlib", "pandas", "numpy"]),
    ("sentence-transformers", &["transformers", "torch", "numpy"]), ("sqlalchemy", &["typing-extensions"]),
    ("statsmodels", &["numpy", "scipy", "pandas", "patsy"]), ("starlette", &["anyio"]), ("sympy", &["mpmath"]),
    ("torch", &["sympy", "networkx", "jinja2", "fsspec", "filelock", "typing-extensions"]),
    ("transformers", &["huggingface-hub", "tokenizers", "numpy", "tqdm"]), ("typer", &["click", "rich"]),
    ("uvicorn", &["click", "h11"]), ("xarray", &["numpy", "pandas"]),
];

const NAMESPACES: &[&str] =
    &["google", "azure", "zope", "opentelemetry", "llama", "sphinxcontrib", "ruamel", "backports", "jaraco"];

#[rustfmt::skip]
const OTHERWISE: &[(&str, &[&str])] = &[
    ("antlr4-python3-runtime", &["antlr4"]), ("attrs", &["attr", "attrs"]), ("babel", &["babel"]),
    ("beautifulsoup4", &["bs4"]), ("biopython", &["Bio"]), ("boto3", &["boto3"]), ("cffi", &["cffi", "_cffi_backend"]), ("clickhouse-connect", &["clickhouse_connect"]),
    ("cupy-cuda12x", &["cupy"]), ("discord-py", &["discord"]), ("dnspython", &["dns"]), ("docker", &["docker"]),
    ("duckduckgo-search", &["duckduckgo_search"]), ("elasticsearch", &["elasticsearch"]), ("faiss-cpu", &["faiss"]),
    ("ffmpeg-python", &["ffmpeg"]), ("gitpython", &["git"]), ("google-api-python-client", &["googleapiclient"]),
    ("google-generativeai", &["google"]), ("grpcio", &["grpc"]), ("grpcio-status", &["grpc_status"]),
    ("kubernetes", &["kubernetes"]), ("langchain-core", &["langchain_core"]), ("ldap3", &["ldap3"]),
    ("levenshtein", &["Levenshtein"]), ("mail-parser", &["mailparser"]), ("markdown", &["markdown"]), ("markitdown", &["markitdown"]),
    ("mysql-connector-python", &["mysql"]), ("mysqlclient", &["MySQLdb"]), ("msgpack", &["msgpack"]),
    ("opencv-python", &["cv2"]), ("opencv-python-headless", &["cv2"]), ("opencv-contrib-python", &["cv2"]),
    ("paho-mqtt", &["paho"]), ("pdfminer-six", &["pdfminer"]), ("pillow", &["PIL"]), ("prometheus-client", &["prometheus_client"]),
    ("protobuf", &["google"]), ("psycopg-binary", &["psycopg"]), ("psycopg2-binary", &["psycopg2"]),
    ("py-cpuinfo", &["cpuinfo"]), ("pycairo", &["cairo"]), ("pycryptodome", &["Crypto"]), ("pycryptodomex", &["Cryptodome"]),
    ("pygithub", &["github"]), ("pygobject", &["gi"]), ("pyjwt", &["jwt"]), ("pymupdf", &["fitz", "pymupdf"]),
    ("pynacl", &["nacl"]), ("pyobjc", &["objc"]), ("pyopenssl", &["OpenSSL"]), ("pyserial", &["serial"]),
    ("pyside6", &["PySide6"]), ("pysocks", &["socks"]), ("python-dateutil", &["dateutil"]), ("python-docx", &["docx"]),
    ("python-dotenv", &["dotenv"]), ("python-jose", &["jose"]), ("python-magic", &["magic"]), ("python-multipart", &["multipart"]),
    ("python-pptx", &["pptx"]), ("python-slugify", &["slugify"]), ("python-telegram-bot", &["telegram"]),
    ("pytorch-lightning", &["pytorch_lightning"]), ("pyusb", &["usb"]), ("pywavelets", &["pywt"]), ("pyyaml", &["yaml"]),
    ("pywin32", &["win32api", "win32con", "win32gui", "win32file", "win32com", "win32clipboard", "win32event", "win32process",
        "win32security", "win32service", "win32print", "pythoncom", "pywintypes"]),
    ("pyzmq", &["zmq"]), ("readability-lxml", &["readability"]), ("ruamel-yaml", &["ruamel"]), ("scikit-image", &["skimage"]),
    ("scikit-learn", &["sklearn"]), ("sentence-transformers", &["sentence_transformers"]), ("setuptools", &["setuptools", "pkg_resources"]),
    ("slack-sdk", &["slack_sdk"]), ("speechrecognition", &["speech_recognition"]), ("sqlalchemy", &["sqlalchemy"]),
    ("tree-sitter-languages", &["tree_sitter_languages"]), ("typing-extensions", &["typing_extensions"]),
    ("pyopengl", &["OpenGL"]), ("hydra-core", &["hydra"]), ("pymongo", &["pymongo", "bson", "gridfs"]), ("openai-whisper", &["whisper"]),
    ("matplotlib", &["matplotlib", "mpl_toolkits", "pylab"]), ("snowflake-connector-python", &["snowflake"]),
    ("imbalanced-learn", &["imblearn"]), ("djangorestframework", &["rest_framework"]), ("django-cors-headers", &["corsheaders"]),
    ("django-filter", &["django_filters"]), ("django-environ", &["environ"]), ("charset-normalizer", &["charset_normalizer"]),
    ("markdown-it-py", &["markdown_it"]), ("rpds-py", &["rpds"]), ("pyaudio", &["pyaudio"]), ("pypdf2", &["PyPDF2"]),
    ("pyqt5", &["PyQt5"]), ("pyqt6", &["PyQt6"]), ("pexpect", &["pexpect"]), ("psycopg2", &["psycopg2"]), ("pyscard", &["smartcard"]),
    ("python-bidi", &["bidi"]), ("python-crontab", &["crontab"]), ("python-gitlab", &["gitlab"]), ("python-ldap", &["ldap"]),
    ("python-lsp-server", &["pylsp"]), ("python-nmap", &["nmap"]), ("python-snappy", &["snappy"]), ("python-xlib", &["Xlib"]),
    ("sounddevice", &["sounddevice"]), ("stripe", &["stripe"]), ("torchvision", &["torchvision"]), ("twisted", &["twisted"]),
    ("zope-interface", &["zope"]), ("wxpython", &["wx"]), ("web3", &["web3"]), ("influxdb-client", &["influxdb_client"]),
    ("google-auth", &["google"]), ("flask-cors", &["flask_cors"]), ("flask-sqlalchemy", &["flask_sqlalchemy"]),
    ("ipython", &["IPython"]), ("jupyter-core", &["jupyter_core"]), ("lightning", &["lightning"]), ("netcdf4", &["netCDF4"]),
    ("newspaper3k", &["newspaper"]), ("pyttsx3", &["pyttsx3"]), ("rank-bm25", &["rank_bm25"]), ("tensorflow-cpu", &["tensorflow"]),
    ("vertica-python", &["vertica_python"]), ("webcolors", &["webcolors"]), ("whoosh", &["whoosh"]), ("xmlsec", &["xmlsec"]),
    ("umap-learn", &["umap"]), ("unstructured", &["unstructured"]), ("websocket-client", &["websocket"]),
    ("xlsxwriter", &["xlsxwriter"]), ("youtube-transcript-api", &["youtube_transcript_api"]), ("yt-dlp", &["yt_dlp"]),
];

#[cfg(test)]
mod tests {
    use super::{brings, comes_along, distribution_of};

    #[test]
    fn packages_bring_others_along() {
        for (package, module) in [
            ("fastapi", "starlette"),
            ("pandas", "numpy"),
            ("requests", "urllib3"),
            ("boto3", "botocore"),
            ("boto3", "dateutil"),
            ("seaborn", "PIL"),
        ] {
            assert!(comes_along(package, module), "{package} brings {module}");
        }
        assert!(!comes_along("numpy", "pandas") && !comes_along("requests", "yaml"));
    }

    #[test]
    fn packages_and_their_modules() {
        for (name, module) in [
            ("httpx", "httpx"),
            ("Pillow", "PIL"),
            ("beautifulsoup4", "bs4"),
            ("python-telegram-bot", "telegram"),
            ("google-cloud-storage", "google"),
            ("ruamel.yaml", "ruamel"),
            ("typing_extensions", "typing_extensions"),
            ("Jinja2", "jinja2"),
            ("PyOpenGL", "OpenGL"),
            ("hydra-core", "hydra"),
            ("pymongo", "bson"),
            ("openai-whisper", "whisper"),
            ("matplotlib", "mpl_toolkits"),
            ("cffi", "_cffi_backend"),
            ("snowflake-connector-python", "snowflake"),
            ("imbalanced-learn", "imblearn"),
            ("djangorestframework", "rest_framework"),
            ("django-cors-headers", "corsheaders"),
        ] {
            assert!(brings(name, module), "{name} brings {module}");
        }
        assert!(!brings("httpx", "requests") && !brings("requests-oauthlib", "requests"));
        assert_eq!(distribution_of("yaml"), Some("pyyaml"));
    }
}
