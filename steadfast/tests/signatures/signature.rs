//! The paths that the public signatures of an item name.

use syn::visit::{self, Visit};
use syn::{
    Expr, Field, Fields, Generics, ImplItem, Item, ItemImpl, ItemTrait, Path, Signature, TraitItem, Type,
    TypeParamBound,
};

use super::resolve::{Definition, Workspace};
use super::source::is_public;

/// A path in a signature, with the module in which it stands.
pub(crate) struct Mention {
    pub(crate) crate_index: usize,
    pub(crate) module: usize,
    pub(crate) path: Vec<String>,
    /// The item whose signature it is, for people.
    pub(crate) place: String,
}

/// Collects what the public parts of an item name: fields, variants, bounds, methods, associated types.
pub(crate) fn signatures_of(workspace: &Workspace, definition: Definition) -> Vec<Mention> {
    let crate_index = definition.crate_index;
    let name = format!("{}::{}", workspace.crate_name(crate_index), workspace.name(definition));
    let mut found = Found { crate_index, module: definition.module, mentions: Vec::new() };
    match workspace.item(definition) {
        Item::Struct(item) => {
            found.generics(&name, &item.generics);
            found.fields(&name, &item.fields, is_public_field);
        }
        Item::Enum(item) => {
            found.generics(&name, &item.generics);
            for variant in &item.variants {
                found.fields(&format!("{name}::{}", variant.ident), &variant.fields, |_| true);
            }
        }
        Item::Trait(item) => found.a_trait(&name, item),
        Item::Type(item) => found.a_type(&name, &item.ty),
        Item::Const(item) => found.a_type(&name, &item.ty),
        Item::Static(item) => found.a_type(&name, &item.ty),
        Item::Fn(item) => found.signature(&name, &item.sig),
        _ => {}
    }
    for (module, item) in workspace.items(crate_index) {
        if let Item::Impl(block) = item
            && path_of(&block.self_ty)
                .is_some_and(|path| workspace.types(crate_index, module, &path).contains(&definition))
        {
            found.module = module;
            found.an_impl(&name, block);
        }
    }
    found.mentions
}

/// Lists the paths that a type names.
pub(crate) fn paths_in_type(what: &Type) -> Vec<Vec<String>> {
    let mut paths = Paths(Vec::new());
    paths.visit_type(what);
    paths.0
}

struct Found {
    crate_index: usize,
    module: usize,
    mentions: Vec<Mention>,
}

impl Found {
    fn a_trait(&mut self, name: &str, item: &ItemTrait) {
        self.generics(name, &item.generics);
        self.bounds(name, item.supertraits.iter());
        for member in &item.items {
            match member {
                TraitItem::Fn(method) => {
                    self.signature(&format!("{name}::{}", method.sig.ident), &method.sig)
                }
                TraitItem::Type(declared) => {
                    self.bounds(&format!("{name}::{}", declared.ident), declared.bounds.iter());
                }
                TraitItem::Const(declared) => {
                    self.a_type(&format!("{name}::{}", declared.ident), &declared.ty);
                }
                _ => {}
            }
        }
    }

    /// Of an `impl` of a trait, what the trait is given and what its associated types are; else the public
    /// members.
    fn an_impl(&mut self, name: &str, block: &ItemImpl) {
        if let Some((_, implemented, _)) = &block.trait_ {
            for segment in &implemented.segments {
                self.visit(name, |paths| paths.visit_path_arguments(&segment.arguments));
            }
        } else {
            self.generics(name, &block.generics);
        }
        for member in &block.items {
            match member {
                ImplItem::Fn(method) if is_public(&method.vis) => {
                    self.signature(&format!("{name}::{}", method.sig.ident), &method.sig);
                }
                ImplItem::Const(declared) if is_public(&declared.vis) => {
                    self.a_type(&format!("{name}::{}", declared.ident), &declared.ty);
                }
                ImplItem::Type(declared) => {
                    self.a_type(&format!("{name}::{}", declared.ident), &declared.ty);
                }
                _ => {}
            }
        }
    }

    fn signature(&mut self, place: &str, signature: &Signature) {
        self.visit(place, |paths| paths.visit_signature(signature));
    }

    fn generics(&mut self, place: &str, generics: &Generics) {
        self.visit(place, |paths| paths.visit_generics(generics));
    }

    fn a_type(&mut self, place: &str, what: &Type) {
        self.visit(place, |paths| paths.visit_type(what));
    }

    fn bounds<'a>(&mut self, place: &str, bounds: impl Iterator<Item = &'a TypeParamBound>) {
        for bound in bounds {
            self.visit(place, |paths| paths.visit_type_param_bound(bound));
        }
    }

    fn fields(&mut self, place: &str, fields: &Fields, counts: fn(&Field) -> bool) {
        for field in fields.iter().filter(|field| counts(field)) {
            let name =
                field.ident.as_ref().map_or_else(|| place.to_owned(), |name| format!("{place}.{name}"));
            self.a_type(&name, &field.ty);
        }
    }

    fn visit(&mut self, place: &str, look: impl FnOnce(&mut Paths)) {
        let mut paths = Paths(Vec::new());
        look(&mut paths);
        for path in paths.0 {
            let (crate_index, module) = (self.crate_index, self.module);
            self.mentions.push(Mention { crate_index, module, path, place: place.to_owned() });
        }
    }
}

fn is_public_field(field: &Field) -> bool {
    is_public(&field.vis)
}

/// The path of a type that is one: `Client` of `Client`, `Through` of `Through<'_>`.
fn path_of(what: &Type) -> Option<Vec<String>> {
    match what {
        Type::Path(path) => Some(texts(&path.path)),
        Type::Reference(reference) => path_of(&reference.elem),
        _ => None,
    }
}

fn texts(path: &Path) -> Vec<String> {
    path.segments.iter().map(|segment| segment.ident.to_string()).collect()
}

/// Gathers every path of the syntax it visits. Expressions, such as lengths of arrays, name no types.
struct Paths(Vec<Vec<String>>);

impl Visit<'_> for Paths {
    fn visit_path(&mut self, path: &Path) {
        self.0.push(texts(path));
        visit::visit_path(self, path);
    }

    fn visit_expr(&mut self, _: &Expr) {}

    fn visit_attribute(&mut self, _: &syn::Attribute) {}
}
