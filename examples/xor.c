#include <onemodel.h>
#include <stdio.h>

int main(void) {
    om_exit_on_error(true);
    om_seed(1);
    om_module *net = om_nn_sequential();
    om_nn_append(net, om_nn_linear(2, 16, NULL));
    om_nn_append(net, om_nn_tanh());
    om_nn_append(net, om_nn_linear(16, 1, NULL));

    om_tensor *x  = om_from((float[]){0, 0, 0, 1, 1, 0, 1, 1}, OM_F32, OM_DIMS(4, 2));
    om_tensor *y  = om_from((float[]){0, 1, 1, 0}, OM_F32, OM_DIMS(4, 1)); // exclusive or
    om_optim *opt = om_adam(net, 0.05, NULL);
    for (int i = 0; i < 200; i++)
        OM_SCOPE {
            om_zero_grad(opt);
            om_backward(om_mse_loss(om_forward(net, x), y));
            om_step(opt);
        }

    om_graph *graph = om_nn_trace(net, x, OM_AXES("batch")); // one recorded run becomes ONNX
    om_graph_save_onnx(graph, "xor.onnx", NULL);

    om_session *session = om_session_new(graph, NULL); // exact arithmetic: the same bits anywhere
    om_tensor *out      = om_session_call(session, x);
    puts(om_text_of(out));
    puts(om_bit_equal(out, om_forward(net, x)) ? "equal to eager, bit for bit" : "different");
    return 0;
}
