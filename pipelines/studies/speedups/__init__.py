"""How much faster do models run than with ORT_ENABLE_ALL, beside public tools?"""
