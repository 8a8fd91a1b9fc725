//===- PlanBuilder.h - A plan, built by a program -------------------------===//
//
// What the output of `gtp-opt --emit=cpp` is written in: tables of buffers,
// parameters, streams and communicators, then the operations of each region in
// issue order. What comes out is the plan that `gtp-opt --emit=plan` writes, to
// the byte, so the same checker, hash and backends take it. plan.proto explains
// the fields; sizes and offsets are bytes, times are nanoseconds.
//
//===----------------------------------------------------------------------===//

#ifndef GTP_RT_PLANBUILDER_H
#define GTP_RT_PLANBUILDER_H

#include "gtp/Plan/plan.pb.h"

#include <cstdint>
#include <initializer_list>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace gtp::rt::build {

namespace pb = plan::pb;

/// Positions in the tables of a plan.
struct Buffer {
  constexpr Buffer(uint32_t index) : index(index) {}
  uint32_t index;
};
struct Parameter {
  constexpr Parameter(uint32_t index) : index(index) {}
  uint32_t index;
};
struct Stream {
  constexpr explicit Stream(uint32_t index) : index(index) {}
  uint32_t index;
};
struct Communicator {
  constexpr explicit Communicator(uint32_t index) : index(index) {}
  uint32_t index;
};

/// An event of a region; `none` where an operation of a class records none.
struct Event {
  constexpr Event(uint32_t index) : plus1(index + 1) {}
  uint32_t plus1;
};
constexpr Event none{UINT32_MAX};
using Events = std::vector<Event>;

/// `pattern` with `label` in the place of its "*": names of a class of layers.
std::string named(const char *pattern, const char *label);

/// What an operation touches of a buffer.
class View {
public:
  View(Buffer buffer, pb::DType dtype, std::initializer_list<uint64_t> dims);
  View &offset(uint64_t bytes);
  /// Elements from a row to the next; without it, rows are dense.
  View &pitch(uint64_t elements);
  /// Bytes an iteration of the region.
  View &perIteration(uint64_t bytes);
  /// Bytes a unit of the rank's coordinate on an axis of the mesh.
  View &perRank(uint32_t axis, uint64_t bytes);
  /// The region's first iteration writes, later ones add.
  View &adds();

  const pb::Operand &message() const { return operand; }

private:
  pb::Operand operand;
};
using Views = std::initializer_list<View>;

/// A view of elements of the type, of the local shape `dims`.
View f32(Buffer buffer, std::initializer_list<uint64_t> dims);
View bf16(Buffer buffer, std::initializer_list<uint64_t> dims);
View f64(Buffer buffer, std::initializer_list<uint64_t> dims);
View i16(Buffer buffer, std::initializer_list<uint64_t> dims);
View i32(Buffer buffer, std::initializer_list<uint64_t> dims);
View i64(Buffer buffer, std::initializer_list<uint64_t> dims);
View u8(Buffer buffer, std::initializer_list<uint64_t> dims);

/// A named number, or list of numbers, that a kernel takes. Lists must outlive
/// the call.
struct Setting {
  Setting(const char *name, double value)
      : name(name), kind(pb::Attribute::kF), real(value) {}
  Setting(const char *name, int64_t value)
      : name(name), kind(pb::Attribute::kI), integer(value) {}
  Setting(const char *name, int value) : Setting(name, int64_t(value)) {}
  Setting(const char *name, const std::vector<double> &values)
      : name(name), kind(pb::Attribute::kConstant), list(&values) {}

  const char *name;
  pb::Attribute::ValueCase kind;
  double real = 0;
  int64_t integer = 0;
  const std::vector<double> *list = nullptr;
};
using Settings = std::initializer_list<Setting>;

/// When, where and for what an operation is issued.
class Issue {
public:
  explicit Issue(Stream stream) { operation.set_stream(stream.index); }
  /// Starts behind the event, of `distance` iterations before.
  Issue &after(Event event, uint32_t distance = 0);
  Issue &after(const Events &events);
  /// Records the event when it completes.
  Issue &signals(Event event);
  Issue &takes(uint32_t nanoseconds);
  /// Iterations that run it; all without.
  Issue &when(pb::Operation::When iterations);
  /// The parameter whose weight it reads or whose gradient it contributes to.
  Issue &of(Parameter parameter);
  /// Of a kernel that reads two weights: the parameters of both, in order.
  Issue &of(Parameter first, Parameter second);
  /// Where in the model it comes from.
  Issue &at(std::string source);
  /// Of kernels: the key into the tuning cache, and the SMs it may fill.
  Issue &algorithm(std::string key);
  Issue &smTarget(uint32_t count);

  pb::Operation operation;
  std::string source, tuned;
  uint32_t parameterPlus1 = 0, secondParameterPlus1 = 0, sms = 0;
};
inline Issue on(Stream stream) { return Issue(stream); }

/// Over which ranks a collective goes, and how. Each function sets the field of
/// its name.
class Over {
public:
  explicit Over(Communicator communicator) {
    collective.set_communicator(communicator.index);
  }
  Over &reduce(pb::Collective::Reduce value);
  Over &wire(pb::DType value);
  Over &accumulation(pb::DType value);
  Over &order(pb::Collective::Order value);
  Over &transport(pb::Collective::Transport value);
  Over &ctas(uint32_t value);
  Over &chunkBytes(uint32_t value);
  Over &scratch(const View &value);

  pb::Collective collective;
};
inline Over over(Communicator communicator) { return Over(communicator); }

/// A dimension of a logical value: `segments` by name and size, the axes that
/// cut it, and the granule of the storage cuts.
class Dim {
public:
  Dim(uint64_t logical) { dim.set_logical(logical); }
  Dim &segment(const char *name, uint64_t size);
  Dim &compute(std::initializer_list<uint32_t> axes);
  Dim &storage(std::initializer_list<uint32_t> axes);
  Dim &granule(uint64_t elements);

  pb::LayoutDim dim;
  std::vector<std::string> segmentNames;
};
using Dims = std::initializer_list<Dim>;

/// A tensor of a parameter as checkpoints name it.
class Tensor {
public:
  Tensor(std::string name, uint64_t rows) : name(std::move(name)) {
    tensor.set_rows(rows);
  }
  Tensor &transposed();
  Tensor &interleaved(uint64_t groups, uint64_t parts);

  std::string name;
  pb::CheckpointTensor tensor;
};

/// The buffers of a parameter, and how it starts and trains.
class Weights {
public:
  explicit Weights(Buffer compute) {
    parameter.set_compute_buffer(compute.index);
  }
  Weights &master(Buffer buffer);
  Weights &remainder(Buffer buffer);
  Weights &states(std::initializer_list<Buffer> buffers);
  Weights &gradient(Buffer buffer);
  Weights &init(pb::Parameter::Init value);
  Weights &uses(uint32_t count);
  Weights &decay();
  Weights &frozen();
  /// Another name of the weight.
  Weights &tied(std::string name);

  pb::Parameter parameter;
  std::vector<std::string> tiedNames;
};
inline Weights weights(Buffer compute) { return Weights(compute); }

/// Fills a plan. Regions belong to the program, operations to the region,
/// named last.
class PlanBuilder {
public:
  PlanBuilder() { intern(""); }

  /// Fields that need no function of their own: the messages `model`,
  /// `numerics`, `provenance`, `claims`, ...
  pb::Plan message;

  void axis(const char *name, uint64_t degree);
  void buffer(pb::Buffer::Kind kind, const std::string &name, uint64_t size,
              uint64_t offset);
  void parameter(const std::string &name, std::initializer_list<uint64_t> shape,
                 Dims layout, std::initializer_list<Tensor> tensors,
                 const Weights &weights);

  void program(pb::Program::Kind kind);
  void input(const char *name, Buffer buffer);
  void output(const char *name, Buffer buffer);
  void region(pb::Region::Kind kind, uint64_t repeat, uint32_t events);

  /// Calls the kernel of the registry, in this runtime's version.
  void kernel(const char *name, Views operands, Settings settings,
              const Issue &issue);
  void collective(pb::Collective::Kind kind, Views sources, Views destinations,
                  const Over &over, const Issue &issue);
  void copy(const View &source, const View &destination, const Issue &issue);
  void fill(const View &destination, uint32_t byteValue, const Issue &issue);

private:
  uint32_t intern(const std::string &text);
  uint32_t internLayout(Dims dims);
  uint32_t internList(const std::vector<double> &values);
  pb::Operation &add(const Issue &issue);

  std::unordered_map<std::string, uint32_t> strings, layouts, lists;
};

/// Declares what each row of a table has, in order.
template <typename Rows, size_t Count>
void declareAll(const Rows (&rows)[Count]) {
  for (Rows row : rows)
    row.declare();
}

/// Issues every layer of a table, in order.
template <typename Layer, size_t Count>
void issueAll(const Layer (&layers)[Count]) {
  for (Layer layer : layers)
    layer.issue();
}

} // namespace gtp::rt::build

#endif // GTP_RT_PLANBUILDER_H
