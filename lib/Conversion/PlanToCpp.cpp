//===- PlanToCpp.cpp - The plan as a C++ program --------------------------===//

#include "gtp/Conversion/PlanToCpp.h"

#include "CppProgram.h"
#include "CppText.h"
#include "gtp/Conversion/Passes.h"
#include "gtp/Conversion/PlanToProto.h"
#include "gtp/Plan/PlanFile.h"

#include "mlir/Dialect/EmitC/IR/EmitC.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Target/Cpp/CppEmitter.h"

namespace gtp {
#define GEN_PASS_DEF_CONVERTPLANTOEMITCPASS
#include "gtp/Conversion/Passes.h.inc"
} // namespace gtp

using namespace gtp;
using namespace gtp::planir;
using namespace mlir;
namespace pb = gtp::plan::pb;

/// Where lines are broken.
static constexpr size_t kColumns = 100;

/// Breaks the text, which starts at `column`, where its outermost list or chain
/// of calls has a joint; lines go on at `indent`.
static std::string wrap(StringRef text, size_t column, size_t indent) {
  std::string result;
  size_t line = 0;  // where the line starts in result
  size_t joint = 0; // where the line can end; 0: nowhere
  size_t depth = 0; // of brackets
  bool isQuoted = false, isEscaped = false;
  // What the outermost bracket opens with: "{a, b}" has its joints inside.
  const size_t joints = text.starts_with("{") ? 1 : 0;
  for (size_t i = 0; i < text.size(); ++i) {
    char c = text[i];
    if (c == '"' && !isEscaped)
      isQuoted = !isQuoted;
    isEscaped = c == '\\' && !isEscaped;
    if (!isQuoted && (c == '(' || c == '{'))
      ++depth;
    if (!isQuoted && (c == ')' || c == '}'))
      --depth;
    if (!isQuoted && depth == 0 && c == '.' && i > 0 && text[i - 1] == ')')
      joint = result.size();
    result += c;
    if (!isQuoted && depth == joints && c == ' ' && i > 0 && text[i - 1] == ',')
      joint = result.size();
    if (column + result.size() - line <= kColumns || joint <= line)
      continue;
    std::string rest = result.substr(joint);
    result.resize(joint);
    while (result.back() == ' ')
      result.pop_back();
    result += "\n" + std::string(indent, ' ');
    line = result.size() - indent;
    column = 0;
    joint = 0;
    result += rest;
  }
  return result;
}

namespace {

/// Transcribes a CppProgram into operations.
class EmitCWriter {
public:
  EmitCWriter(OpBuilder &builder, Location loc) : builder(builder), loc(loc) {}

  void write(const CppProgram &program, const pb::Plan &plan);

private:
  emitc::OpaqueType type(StringRef text) {
    return emitc::OpaqueType::get(builder.getContext(), text);
  }
  emitc::OpaqueAttr value(StringRef text) {
    return emitc::OpaqueAttr::get(builder.getContext(), text);
  }
  void verbatim(const Twine &text) {
    emitc::VerbatimOp::create(builder, loc, builder.getStringAttr(text.str()));
  }
  void writeHeader(const pb::Plan &plan);
  void writeCall(const CppCall &call, size_t indent);
  void writeFunction(StringRef name, ArrayRef<CppCall> calls, bool isMember);
  void writeClass(const CppClass &layer);
  void writeTable(const CppTable &table);
  void writeMain(const CppProgram &program, const pb::Plan &plan);

  OpBuilder &builder;
  Location loc;
};

} // namespace

/// Text of the plan inside a comment.
static std::string commentText(StringRef text) {
  std::string result;
  for (char c : text)
    result += c >= ' ' && c < 0x7f && c != '\\' ? c : '?';
  return result;
}

void EmitCWriter::writeHeader(const pb::Plan &plan) {
  verbatim("// " + commentText(plan.provenance().source()) + ": " +
           commentText(plan.provenance().family()) + " by " + plan.producer() +
           ", as a program that trains.");
  for (const std::string &option : plan.provenance().options())
    verbatim("//   " + commentText(option));
  verbatim("//");
  verbatim("// gtp-rt/PlanBuilder.h explains the calls, docs/compiling.md how "
           "to build it.\n");
  emitc::IncludeOp::create(builder, loc, "gtp-rt/Main.h");
  emitc::IncludeOp::create(builder, loc, "gtp-rt/PlanBuilder.h");
  verbatim("");
  emitc::IncludeOp::create(builder, loc, "cmath", true);
  verbatim("\nusing namespace gtp::rt::build;\n");
  emitc::GlobalOp::create(builder, loc, "plan", type("PlanBuilder"), {},
                          /*extern_specifier=*/false,
                          /*static_specifier=*/true);
}

void EmitCWriter::writeCall(const CppCall &call, size_t indent) {
  size_t column = indent + call.callee.size() + 1;
  SmallVector<Attribute> arguments;
  for (const std::string &argument : call.arguments) {
    if (column + argument.size() + 4 <= kColumns) {
      arguments.push_back(value(argument));
      column += argument.size() + 2;
      continue;
    }
    std::string text = "\n" + std::string(indent + 4, ' ') +
                       wrap(argument, indent + 4, indent + 6);
    column = text.size() - text.rfind('\n') + 1;
    arguments.push_back(value(text));
  }
  emitc::CallOpaqueOp::create(builder, loc, TypeRange(), call.callee,
                              ValueRange(), builder.getArrayAttr(arguments));
}

void EmitCWriter::writeFunction(StringRef name, ArrayRef<CppCall> calls,
                                bool isMember) {
  auto function = emitc::FuncOp::create(builder, loc, name,
                                        builder.getFunctionType({}, {}));
  if (!isMember)
    function.setSpecifiersAttr(builder.getStrArrayAttr({"static"}));
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(function.addEntryBlock());
  for (const CppCall &call : calls)
    writeCall(call, isMember ? 4 : 2);
  emitc::ReturnOp::create(builder, loc, Value());
}

void EmitCWriter::writeClass(const CppClass &layer) {
  verbatim("\n// " + layer.comment);
  auto op = emitc::ClassOp::create(builder, loc, layer.name);
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(&op.getBody().emplaceBlock());
  for (const CppField &field : layer.fields)
    emitc::FieldOp::create(builder, loc, field.name, type(field.type), {});
  writeFunction(layer.function, layer.calls, /*isMember=*/true);
}

void EmitCWriter::writeTable(const CppTable &table) {
  std::string rows;
  for (const std::vector<std::string> &row : table.rows) {
    std::string text = "{";
    for (const std::string &cell : row)
      text += (text.size() > 1 ? ", " : "") + cell;
    rows += (rows.empty() ? "{\n    " : ",\n    ") + wrap(text + "}", 4, 5);
  }
  auto array = emitc::ArrayType::get({static_cast<int64_t>(table.rows.size())},
                                     type(table.type));
  emitc::GlobalOp::create(builder, loc, table.name, array, value(rows + "}"),
                          /*extern_specifier=*/false, /*static_specifier=*/true,
                          /*const_specifier=*/true);
}

void EmitCWriter::writeMain(const CppProgram &program, const pb::Plan &plan) {
  Type integer = type("int");
  Type strings = emitc::PointerType::get(emitc::PointerType::get(type("char")));
  auto function = emitc::FuncOp::create(
      builder, loc, "main",
      builder.getFunctionType({integer, strings}, {integer}));
  OpBuilder::InsertionGuard guard(builder);
  Block *entry = function.addEntryBlock();
  builder.setInsertionPointToStart(entry);
  for (const CppFunction &each : program.functions)
    writeCall({each.name, {}}, 2);
  auto argument = [&](int64_t index) { return builder.getIndexAttr(index); };
  auto code = emitc::CallOpaqueOp::create(
      builder, loc, integer, "gtp::rt::runBuiltPlan", entry->getArguments(),
      builder.getArrayAttr({argument(0), argument(1), value("plan.message"),
                            value(quoted(plan::sealedHash(plan).text()))}));
  emitc::ReturnOp::create(builder, loc, code.getResult(0));
}

void EmitCWriter::write(const CppProgram &program, const pb::Plan &plan) {
  writeHeader(plan);
  std::string last;
  for (const CppConstant &constant : program.constants) {
    if (constant.type != last)
      verbatim("");
    last = constant.type;
    size_t column = 20 + constant.type.size() + constant.name.size();
    emitc::GlobalOp::create(builder, loc, constant.name, type(constant.type),
                            value(wrap(constant.value, column, 4)),
                            /*extern_specifier=*/false,
                            /*static_specifier=*/true,
                            /*const_specifier=*/true);
  }
  for (const CppClass &layer : program.classes) {
    writeClass(layer);
    for (const CppTable &table : program.tables)
      if (table.type == layer.name) {
        verbatim("");
        writeTable(table);
      }
  }
  for (const CppFunction &function : program.functions) {
    verbatim("");
    writeFunction(function.name, function.calls, /*isMember=*/false);
  }
  verbatim("");
  writeMain(program, plan);
}

LogicalResult gtp::buildEmitC(ProgramOp program, OpBuilder &builder) {
  pb::Plan plan;
  if (failed(emitPlan(program, plan)))
    return failure();
  auto countBuffers = [](auto op) {
    auto buffers = op.template getOps<BufferOp>();
    return static_cast<int>(std::distance(buffers.begin(), buffers.end()));
  };
  std::vector<int> buffers = {countBuffers(program)};
  for (auto other : program.getOps<SubprogramOp>())
    buffers.push_back(countBuffers(other));
  StatusOr<PlanItems> items = itemsOf(plan, buffers);
  if (!items.isOk())
    return program.emitOpError() << items.message();
  EmitCWriter(builder, program.getLoc())
      .write(cppProgramOf(plan, *items), plan);
  return success();
}

LogicalResult gtp::emitCpp(ProgramOp program, llvm::raw_ostream &stream) {
  program.getContext()->loadDialect<emitc::EmitCDialect>();
  OwningOpRef<ModuleOp> module = ModuleOp::create(program.getLoc());
  OpBuilder builder = OpBuilder::atBlockBegin(module->getBody());
  if (failed(buildEmitC(program, builder)))
    return failure();
  std::string text;
  llvm::raw_string_ostream whole(text);
  if (failed(emitc::translateToCpp(*module, whole)))
    return failure();
  // A comma before an argument that starts a line leaves a blank.
  for (StringRef rest = text; !rest.empty();) {
    auto [line, next] = rest.split('\n');
    stream << line.rtrim(' ') << '\n';
    rest = next;
  }
  return success();
}

namespace {

struct ConvertPlanToEmitCPass
    : public gtp::impl::ConvertPlanToEmitCPassBase<ConvertPlanToEmitCPass> {
  void runOnOperation() override {
    ProgramOp program = findProgram(getOperation());
    if (!program)
      return signalPassFailure();
    OpBuilder builder(program);
    if (failed(buildEmitC(program, builder)))
      return signalPassFailure();
    program.erase();
  }
};

} // namespace
