"""V and M of the paper: a graph encoder that pools a graph into one vector, and a recurrent model of that vector."""
