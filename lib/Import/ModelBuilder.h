//===- ModelBuilder.h - Writes a tfm forward program ----------------------===//
//
// What all families share: parameters under checkpoint names, one forward
// function, locations that name the module of the model, and the counts that
// the program's description states.
//
//===----------------------------------------------------------------------===//

#ifndef GTP_LIB_IMPORT_MODELBUILDER_H
#define GTP_LIB_IMPORT_MODELBUILDER_H

#include "gtp/Import/Import.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinTypes.h"

namespace gtp {

/// What the program's description (`tfm.model`) says beside what the builder
/// counts itself.
struct ModelDescription {
  llvm::StringRef family;
  int64_t vocabulary = 0;
  int64_t maxPositions = 0;
  double initializerRange = 0;
};

/// How a checkpoint lays out the rows of a linear, where that is not [rows,
/// columns] in this order; see tfm.parameter.
struct TensorLayout {
  bool transposed = false;
  int64_t groups = 0;
  int64_t parts = 0;
};

struct LinearSpec {
  bool bias = false;
  TensorLayout layout = {};
};

/// Causal attention of one layer.
struct AttentionSpec {
  int64_t heads = 0;
  int64_t kvHeads = 0;
  int64_t headDim = 0;
  /// 0: 1/sqrt(headDim).
  double scale = 0;
  /// 0: the whole sequence.
  int64_t window = 0;
  /// 0: none.
  double softcap = 0;
};

/// Builds one module. Every method that takes a `name` gives its ops that
/// location, and its weight is the parameter `name`.weight, its bias
/// `name`.bias.
class ModelBuilder {
public:
  /// `sequence` is ImportOptions::sequence once its default is known.
  ModelBuilder(mlir::Location module, const ImportOptions &options,
               int64_t sequence);

  /// Checkpoints may have the names of all weights without this beginning:
  /// those of the model without its head do.
  void makeOptional(llvm::StringRef prefix) { optionalPrefix = prefix; }

  /// Names the weight `alias` as one with `name`: it is stored once.
  void tie(llvm::StringRef name, llvm::StringRef alias);

  mlir::Value embedding(llvm::StringRef name, int64_t vocabulary,
                        int64_t features);
  /// x plus the first rows of a table of `positions`.
  mlir::Value addPositions(llvm::StringRef name, mlir::Value x,
                           int64_t positions);
  /// With `unitOffset` the weight counts from 1.
  mlir::Value rmsNorm(llvm::StringRef name, mlir::Value x, int64_t group,
                      double eps, bool unitOffset = false);
  /// Of all features, with a bias.
  mlir::Value layerNorm(llvm::StringRef name, mlir::Value x, double eps);
  /// `rows` outputs of each vector of x.
  mlir::Value linear(llvm::StringRef name, mlir::Value x, int64_t rows,
                     const LinearSpec &spec = {});
  /// A linear whose weight is that of `weightOf`, which exists.
  mlir::Value tiedLinear(llvm::StringRef name, mlir::Value x,
                         llvm::StringRef weightOf);
  mlir::Value rope(llvm::StringRef name, mlir::Value x, int64_t headDim,
                   llvm::ArrayRef<double> frequencies);
  mlir::Value attention(llvm::StringRef name, mlir::Value q, mlir::Value k,
                        mlir::Value v, const AttentionSpec &spec);
  /// Pieces of the features of x.
  llvm::SmallVector<mlir::Value> split(llvm::StringRef name, mlir::Value x,
                                       llvm::ArrayRef<int64_t> sizes);
  mlir::Value gelu(llvm::StringRef name, mlir::Value x, bool approximate);
  /// x times a factor that is rounded to the element type.
  mlir::Value scale(llvm::StringRef name, mlir::Value x, double factor);
  mlir::Value softcap(llvm::StringRef name, mlir::Value x, double cap);
  mlir::Value mul(llvm::StringRef name, mlir::Value a, mlir::Value b);
  mlir::Value swiglu(llvm::StringRef name, mlir::Value gate, mlir::Value up);
  mlir::Value add(llvm::StringRef name, mlir::Value a, mlir::Value b);

  /// Ends the program with the loss of `logits`.
  mlir::OwningOpRef<mlir::ModuleOp> finish(mlir::Value logits,
                                           const ModelDescription &description);

private:
  mlir::Location at(llvm::StringRef name);
  mlir::RankedTensorType activation(int64_t features);
  /// Declares the parameter `name`.weight and reads it.
  mlir::Value weight(llvm::StringRef name, llvm::ArrayRef<int64_t> shape,
                     llvm::StringRef init, const TensorLayout &layout = {});
  /// x plus the parameter `name`.bias.
  mlir::Value addBias(llvm::StringRef name, mlir::Value x,
                      const TensorLayout &layout = {});
  mlir::Value declare(llvm::StringRef name, llvm::StringRef symbol,
                      llvm::ArrayRef<int64_t> shape, llvm::StringRef init,
                      const TensorLayout &layout);
  mlir::Value read(llvm::StringRef name, llvm::StringRef symbol);

  mlir::OpBuilder builder;
  const ImportOptions &options;
  int64_t batch;
  int64_t sequence;
  mlir::Type element;
  mlir::OwningOpRef<mlir::ModuleOp> module;
  mlir::func::FuncOp forward;
  /// Where the document of each token starts; null without a separator.
  mlir::Value documentStarts;
  mlir::SymbolTable symbols;
  llvm::StringRef optionalPrefix;
  int64_t parameters = 0;
  /// Multiply-adds of all matrix products, a token.
  double productsPerToken = 0;
};

} // namespace gtp

#endif // GTP_LIB_IMPORT_MODELBUILDER_H
