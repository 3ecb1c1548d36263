/*
 * onemodel.h -- the whole library: tensors, operators, training, tracing, graphs, sessions.
 */
#ifndef ONEMODEL_H
#define ONEMODEL_H

#include <onemodel/base.h>
#include <onemodel/tensor.h>
#include <onemodel/ops.h>
#include <onemodel/autograd.h>
#include <onemodel/nn.h>
#include <onemodel/optim.h>
#include <onemodel/graph.h>
#include <onemodel/onnx.h>
#include <onemodel/session.h>
#include <onemodel/trace.h>

#endif
