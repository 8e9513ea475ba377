//! The modules of a crate, read from its `lib.rs` on.

use std::path::{Path, PathBuf};

use syn::{Attribute, Item, ItemUse, UseTree, Visibility};

/// One module with its items and imports. Modules of a crate are numbered; the root is 0.
pub(crate) struct Module {
    pub(crate) items: Vec<Item>,
    pub(crate) imports: Vec<Import>,
    pub(crate) children: Vec<Child>,
    pub(crate) parent: Option<usize>,
}

/// A `mod` declaration.
pub(crate) struct Child {
    pub(crate) name: String,
    pub(crate) module: usize,
    pub(crate) public: bool,
}

/// One leaf of a `use` tree.
pub(crate) struct Import {
    pub(crate) path: Vec<String>,
    /// The name that it has here; `None` for a glob.
    pub(crate) name: Option<String>,
    pub(crate) public: bool,
}

/// Reads all modules of a crate. Tests and doctests are left out, features are taken as enabled.
pub(crate) fn read_crate(root: &Path) -> Vec<Module> {
    let mut modules = Vec::new();
    let text = read(root);
    let folder = root.parent().expect("a file is in a folder").to_owned();
    read_module(parse(&text, root), &folder, None, &mut modules);
    modules
}

fn read_module(items: Vec<Item>, folder: &Path, parent: Option<usize>, modules: &mut Vec<Module>) -> usize {
    let index = modules.len();
    modules.push(Module { items: Vec::new(), imports: Vec::new(), children: Vec::new(), parent });
    for item in items {
        match item {
            Item::Mod(declaration) if !only_for_tests(&declaration.attrs) => {
                let name = declaration.ident.to_string();
                let (content, inside) = match declaration.content {
                    Some((_, items)) => (items, folder.join(&name)),
                    None => read_file(folder, &name),
                };
                let module = read_module(content, &inside, Some(index), modules);
                modules[index].children.push(Child { name, module, public: is_public(&declaration.vis) });
            }
            Item::Mod(_) => {}
            Item::Use(import) => add_imports(&import, &mut modules[index].imports),
            other => modules[index].items.push(other),
        }
    }
    index
}

/// Finds the file of a module, in either of its two places, and says where its own modules are.
fn read_file(folder: &Path, name: &str) -> (Vec<Item>, PathBuf) {
    let inside = folder.join(name);
    let beside = folder.join(format!("{name}.rs"));
    let file = if beside.exists() { beside } else { inside.join("mod.rs") };
    (parse(&read(&file), &file), inside)
}

fn read(file: &Path) -> String {
    std::fs::read_to_string(file).unwrap_or_else(|error| panic!("{}: {error}", file.display()))
}

fn parse(text: &str, file: &Path) -> Vec<Item> {
    syn::parse_file(text).unwrap_or_else(|error| panic!("{}: {error}", file.display())).items
}

fn only_for_tests(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        attribute.path().is_ident("cfg")
            && attribute
                .parse_args::<syn::Path>()
                .is_ok_and(|what| what.is_ident("test") || what.is_ident("doctest"))
    })
}

pub(crate) fn is_public(visibility: &Visibility) -> bool {
    matches!(visibility, Visibility::Public(_))
}

fn add_imports(import: &ItemUse, imports: &mut Vec<Import>) {
    add_tree(&import.tree, Vec::new(), is_public(&import.vis), imports);
}

fn add_tree(tree: &UseTree, mut path: Vec<String>, public: bool, imports: &mut Vec<Import>) {
    match tree {
        UseTree::Path(step) => {
            path.push(step.ident.to_string());
            add_tree(&step.tree, path, public, imports);
        }
        UseTree::Group(group) => {
            for tree in &group.items {
                add_tree(tree, path.clone(), public, imports);
            }
        }
        UseTree::Name(leaf) if leaf.ident == "self" => {
            imports.push(Import { name: path.last().cloned(), path, public });
        }
        UseTree::Name(leaf) => {
            let name = leaf.ident.to_string();
            path.push(name.clone());
            imports.push(Import { path, name: Some(name), public });
        }
        UseTree::Rename(leaf) => {
            path.push(leaf.ident.to_string());
            imports.push(Import { path, name: Some(leaf.rename.to_string()), public });
        }
        UseTree::Glob(_) => imports.push(Import { path, name: None, public }),
    }
}
